static void sub_step(const double *p, double t, double d, const interval *over, double *x)
{
    double f[N], room[ROOM];
    int i;
    PRE_derivative(p, t, x, held(over, t, room), f);
    for (i = 0; i < N; i++)
        x[i] += d * f[i];
}

/* The same with F, the derivative of what came of it by where it began. */
static void sub_step_linear(const double *p, double t, double d, const interval *over, double *x, matrices *m)
{
    double f[N], room[ROOM];
    int i;
    linearise(p, t, x, held(over, t, room), f, m->J);
    for (i = 0; i < N; i++)
        x[i] += d * f[i];
    for (i = 0; i < N * N; i++)
        m->J[i] *= d;
    for (i = 0; i < N; i++)
        m->J[i * N + i] += 1.0;
    chain(m->J, m);
}
