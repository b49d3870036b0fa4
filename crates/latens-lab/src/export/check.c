/* Runs an exported model: check FOLDER. Time a sample of the filter goes to standard output. */
#include "exported.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STATES PRE_STATES
#define INPUTS PRE_INPUTS
#define OUTPUTS PRE_OUTPUTS

static FILE *file(const char *folder, const char *name, const char *mode)
{
    char path[4096];
    FILE *found;
    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
    found = fopen(path, mode);
    if (!found)
        exit(1);
    return found;
}

static void put(FILE *out, const double *values, int count)
{
    fwrite(values, sizeof *values, (size_t)count, out);
}

static void values(const char *folder)
{
    FILE *in = file(folder, "points", "rb"), *out = file(folder, "cc-values", "wb");
    double row[1 + STATES + 2 * INPUTS], f[STATES], next[STATES], y[OUTPUTS];
    while (fread(row, sizeof row, 1, in) == 1) {
        const double *x = row + 1, *u = x + STATES, *v = u + INPUTS;
        PRE_derivative(0, row[0], x, u, f);
        PRE_step(0, row[0], x, u, v, next);
        PRE_outputs(0, row[0], x, u, y);
        put(out, f, STATES);
        put(out, next, STATES);
        put(out, y, OUTPUTS);
    }
    fclose(in);
    fclose(out);
}

static void run(const char *folder)
{
    FILE *in = file(folder, "driving", "rb"), *out = file(folder, "cc-run", "wb");
    double row[1 + INPUTS], after[1 + INPUTS], x[STATES], next[STATES];
    int i;
    for (i = 0; i < STATES; i++)
        x[i] = PRE_start[i];
    if (fread(row, sizeof row, 1, in) != 1)
        exit(1);
    put(out, x, STATES);
    while (fread(after, sizeof after, 1, in) == 1) {
        PRE_step(PRE_learned, row[0], x, row + 1, after + 1, next);
        for (i = 0; i < STATES; i++)
            x[i] = next[i];
        put(out, x, STATES);
        for (i = 0; i < 1 + INPUTS; i++)
            row[i] = after[i];
    }
    fclose(in);
    fclose(out);
}

static void filter(const char *folder)
{
    enum { ROW = 1 + INPUTS + OUTPUTS, MOST = 10000 };
    static double rows[MOST][ROW], found[MOST][2 * STATES];
    static PRE_filter f;
    FILE *in = file(folder, "samples", "rb"), *out = file(folder, "cc-filter", "wb");
    int count = (int)fread(rows, sizeof rows[0], MOST, in), pass, k, i;
    double best = 1e9;
    for (pass = 0; pass < 5; pass++) {
        clock_t begun = clock();
        double seconds;
        PRE_filter_begin(&f);
        for (k = 0; k < count; k++) {
            if (PRE_filter_step(&f, rows[k][0], rows[k] + 1, rows[k] + 1 + INPUTS) < 0)
                exit(2);
            for (i = 0; i < STATES; i++) {
                found[k][i] = f.x[i];
                found[k][STATES + i] = f.P[i * STATES + i];
            }
        }
        seconds = (double)(clock() - begun) / CLOCKS_PER_SEC / count;
        best = seconds < best ? seconds : best;
    }
    for (k = 0; k < count; k++)
        put(out, found[k], 2 * STATES);
    fclose(in);
    fclose(out);
    printf("%.3e\n", best);
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 1;
    values(arguments[1]);
    run(arguments[1]);
    filter(arguments[1]);
    return 0;
}
