// The loops of package stream in C, for a compiler that vectorises. Usage: reference REPETITIONS
// ELEMENTS is the length of the arrays and PAD the elements between them, both set by the compiler's command line.
// It prints the best rate of each kernel in MB/s, without the first repetition.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

// Arrays of a fixed place let the compiler see that they do not overlap.
static double a[ELEMENTS + PAD], b[ELEMENTS + PAD], c[ELEMENTS + PAD];

int main(int count, char **words) {
	int repetitions = count > 1 ? atoi(words[1]) : 10;
	volatile double hidden = 3.0;
	const double factor = hidden;
	const double bytes[4] = {16, 16, 24, 24};
	double best[4] = {1e30, 1e30, 1e30, 1e30};
	double wantA = 2, wantB = 2, wantC = 0, off = 0;
	long i;
#pragma omp parallel for
	for (i = 0; i < ELEMENTS; i++) {
		a[i] = 2;
		b[i] = 2;
		c[i] = 0;
	}
	for (int r = 0; r < repetitions; r++) {
		double at[5];
		at[0] = seconds();
#pragma omp parallel for
		for (i = 0; i < ELEMENTS; i++)
			c[i] = a[i];
		at[1] = seconds();
#pragma omp parallel for
		for (i = 0; i < ELEMENTS; i++)
			b[i] = factor * c[i];
		at[2] = seconds();
#pragma omp parallel for
		for (i = 0; i < ELEMENTS; i++)
			c[i] = a[i] + b[i];
		at[3] = seconds();
#pragma omp parallel for
		for (i = 0; i < ELEMENTS; i++)
			a[i] = b[i] + factor * c[i];
		at[4] = seconds();
		for (int k = 0; r > 0 && k < 4; k++)
			if (at[k + 1] - at[k] < best[k])
				best[k] = at[k + 1] - at[k];
		wantC = wantA;
		wantB = 3 * wantC;
		wantC = wantA + wantB;
		wantA = wantB + 3 * wantC;
	}
	for (i = 0; i < ELEMENTS; i++)
		off += fabs(a[i] / wantA - 1) + fabs(b[i] / wantB - 1) + fabs(c[i] / wantC - 1);
	if (!(off / ELEMENTS < 1e-13))
		return 1;
	for (int k = 0; k < 4; k++)
		printf("%.1f ", 1e-6 * bytes[k] * ELEMENTS / best[k]);
	printf("\n");
	return 0;
}
