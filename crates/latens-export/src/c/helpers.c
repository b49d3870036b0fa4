//sigmoid:
static double l_sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x >= 0.0 ? 1.0 : e) / (1.0 + e);
}

//softplus:
static double l_softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}

//sign:
static double l_sign(double x)
{
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}

//linoid:
static double l_linoid(double x)
{
    return fabs(x) < 1e-5 ? 1.0 + x / 2.0 + x * x / 12.0 : -x / expm1(-x);
}

//linoid_slope: linoid
static double l_linoid_slope(double x)
{
    double s = x * x;
    if (fabs(x) < 0.05)
        return 0.5 + x * (1.0 / 6.0 - s * (1.0 / 180.0 - s * (1.0 / 5040.0 - s / 151200.0)));
    if (x > 0.0)
        return (1.0 - l_linoid(x) * exp(-x)) / -expm1(-x);
    return (exp(x) - l_linoid(x)) / expm1(x);
}

//sinc:
static double l_sinc(double x)
{
    return fabs(x) < 1e-4 ? 1.0 - x * x / 6.0 : sin(x) / x;
}

//sinc_slope: sinc
static double l_sinc_slope(double x)
{
    double s = x * x;
    if (fabs(x) < 0.05)
        return -x * (1.0 / 3.0 - s * (1.0 / 30.0 - s * (1.0 / 840.0 - s / 45360.0)));
    return (cos(x) - l_sinc(x)) / x;
}

//power:
static double l_power(double x, int n)
{
    double value = 1.0;
    int k = n < 0 ? -n : n;
    for (; k > 0; k >>= 1) {
        if (k & 1)
            value *= x;
        x *= x;
    }
    return n < 0 ? 1.0 / value : value;
}

//table:
/* A curve through n points, which keeps the values at its ends or, with a period, repeats. */
static double l_table(int n, const double *x, const double *y, double period, int slope, double at)
{
    int low = 0, high = n;
    double x1, y1, rise;
    if (period > 0.0) {
        double turn = fmod(at - x[0], period);
        at = x[0] + (turn < 0.0 ? turn + period : turn);
    }
    while (low < high) {
        int middle = (low + high) / 2;
        if (x[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return slope ? 0.0 : y[0];
    if (low == n && !(period > 0.0))
        return slope ? 0.0 : y[n - 1];
    x1 = low < n ? x[low] : x[0] + period;
    y1 = low < n ? y[low] : y[0];
    rise = (y1 - y[low - 1]) / (x1 - x[low - 1]);
    return slope ? rise : y[low - 1] + rise * (at - x[low - 1]);
}

//dense:
/* out = b + W z, with W column by column. */
static void l_dense(int from, int to, const double *w, const double *b, const double *z, double *restrict out)
{
    int i, j;
    for (i = 0; i < to; i++)
        out[i] = b[i];
    for (j = 0; j < from; j++)
        for (i = 0; i < to; i++)
            out[i] += w[j * to + i] * z[j];
}

//back:
/* below = W' delta, with W column by column. */
static void l_back(int from, int to, const double *w, const double *delta, double *restrict below)
{
    int i, j;
    for (j = 0; j < from; j++) {
        const double *c = w + j * to;
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        for (i = 0; i + 3 < to; i += 4) {
            s0 += c[i] * delta[i];
            s1 += c[i + 1] * delta[i + 1];
            s2 += c[i + 2] * delta[i + 2];
            s3 += c[i + 3] * delta[i + 3];
        }
        for (; i < to; i++)
            s0 += c[i] * delta[i];
        below[j] = (s0 + s1) + (s2 + s3);
    }
}

//layer_tanh:
static void l_layer_tanh(int n, double *z, double *s)
{
    int i;
    for (i = 0; i < n; i++) {
        z[i] = tanh(z[i]);
        s[i] = 1.0 - z[i] * z[i];
    }
}

//layer_sigmoid: sigmoid
static void l_layer_sigmoid(int n, double *z, double *s)
{
    int i;
    for (i = 0; i < n; i++) {
        z[i] = l_sigmoid(z[i]);
        s[i] = z[i] * (1.0 - z[i]);
    }
}

//layer_elu:
static void l_layer_elu(int n, double *z, double *s)
{
    int i;
    for (i = 0; i < n; i++) {
        double e = z[i] > 0.0 ? 0.0 : expm1(z[i]);
        z[i] = z[i] > 0.0 ? z[i] : e;
        s[i] = e + 1.0;
    }
}

//layer_softplus: sigmoid softplus
static void l_layer_softplus(int n, double *z, double *s)
{
    int i;
    for (i = 0; i < n; i++) {
        s[i] = l_sigmoid(z[i]);
        z[i] = l_softplus(z[i]);
    }
}

//layer_silu: sigmoid
static void l_layer_silu(int n, double *z, double *s)
{
    int i;
    for (i = 0; i < n; i++) {
        double g = l_sigmoid(z[i]);
        s[i] = g * (1.0 + z[i] * (1.0 - g));
        z[i] *= g;
    }
}

//layer_relu:
static void l_layer_relu(int n, double *z, double *s)
{
    int i;
    for (i = 0; i < n; i++) {
        s[i] = z[i] > 0.0 ? 1.0 : 0.0;
        z[i] = z[i] < 0.0 ? 0.0 : z[i];
    }
}

//layer_identity:
static void l_layer_identity(int n, double *z, double *s)
{
    int i;
    (void)z;
    for (i = 0; i < n; i++)
        s[i] = 1.0;
}

