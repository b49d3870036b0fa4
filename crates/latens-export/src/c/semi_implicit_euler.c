static void sub_step(const double *p, double t, double d, const interval *over, double *x)
{
    double f[N], room[ROOM];
    const double *u = held(over, t, room);
    int r;
    for (r = N - 1; r >= 0; r--) {
        PRE_derivative(p, t, x, u, f);
        x[r] += d * f[r];
    }
}

/* The same with F, the derivative of what came of it by where it began. */
static void sub_step_linear(const double *p, double t, double d, const interval *over, double *x, matrices *m)
{
    double f[N], row[N], room[ROOM];
    const double *u = held(over, t, room);
    int r, i, j;
    for (r = N - 1; r >= 0; r--) {
        linearise(p, t, x, u, f, m->J);
        x[r] += d * f[r];
        for (i = 0; i < N; i++)
            row[i] = m->F[r * N + i];
        for (j = 0; j < N; j++) {
            double factor = d * m->J[r * N + j];
            if (factor != 0.0)
                for (i = 0; i < N; i++)
                    row[i] += factor * m->F[j * N + i];
        }
        for (i = 0; i < N; i++)
            m->F[r * N + i] = row[i];
    }
}
