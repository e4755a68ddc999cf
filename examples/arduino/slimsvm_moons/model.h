/*
 * model.h: 2 classes from 2 inputs by 8 vectors, kernel rbf, int8.
 * Made by slimsvm 0.1.0. C99; compiles as C++. No memory but the stack.
 *
 * int model_predict(const float x[MODEL_INPUTS])    number of the class; model_label(number) is its label
 * void model_decision(const float x[MODEL_INPUTS], float f[MODEL_OUTPUTS])    scores
 * void model_probabilities(const float x[MODEL_INPUTS], float p[MODEL_CLASSES])
 * int model_predict_int16(const int16_t u[MODEL_USED])    a row in integers, no floats at all
 *
 * Classes: 0 = 0, 1 = 1
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>
#include <string.h>

#define MODEL_INPUTS 2
#define MODEL_USED 2
#define MODEL_VECTORS 8
#define MODEL_VALUES 1
#define MODEL_CLASSES 2
#define MODEL_OUTPUTS 1

/* On AVR constants would be copied to RAM unless they are read from flash by special instructions. */
#if defined(__AVR__)
#include <avr/pgmspace.h>
#define MODEL_ROM PROGMEM
#define MODEL_FLOAT(number) pgm_read_float(&(number))
#define MODEL_INT8(number) ((int8_t)pgm_read_byte(&(number)))
#define MODEL_UINT8(number) pgm_read_byte(&(number))
#define MODEL_INT16(number) ((int16_t)pgm_read_word(&(number)))
#define MODEL_UINT16(number) pgm_read_word(&(number))
#define MODEL_INT32(number) ((int32_t)pgm_read_dword(&(number)))
#else
#define MODEL_ROM
#define MODEL_FLOAT(number) (number)
#define MODEL_INT8(number) (number)
#define MODEL_UINT8(number) (number)
#define MODEL_INT16(number) (number)
#define MODEL_UINT16(number) (number)
#define MODEL_INT32(number) (number)
#endif

/* For each input: 3 bits for the step of its bytes, 6 for how far the exponent of its gain is below the largest,
   7 for the mantissa. */
static const uint16_t model_steps[2] MODEL_ROM = {
    57345, 41186,
};

static inline float model_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A row in integers: (x - offset) * gain, to the nearest, for the inputs that count. Further out than 32767 nothing
   changes; what is no number goes to the lower end. */
static inline void model_to_int16(const float x[MODEL_INPUTS], int16_t u[MODEL_USED])
{
    int n = 0;
    for (int i = 0; i < MODEL_INPUTS; ++i) {
        const uint16_t s = MODEL_UINT16(model_steps[n]);
        float t = (x[i] - 0.0f) * model_float(((uint32_t)(139 - ((s >> 7) & 63)) << 23) | ((uint32_t)(s & 127u) << 16));
        if (!(t > -32767.0f)) t = -32767.0f;
        if (t > 32767.0f) t = 32767.0f;
        u[n++] = (int16_t)(t + (t < 0.0f ? -0.5f : 0.5f));
    }
}

/* The same from readings in integers, of a converter for example, if the model was trained on such: no float at all. */
static inline void model_from_readings(const int16_t x[MODEL_INPUTS], int16_t u[MODEL_USED])
{
    int n = 0;
    for (int i = 0; i < MODEL_INPUTS; ++i) {
        int64_t t;
        uint64_t size;
        const uint16_t s = MODEL_UINT16(model_steps[n]);
        const int32_t gain = (int)(s & 127u) + 128, shift = 3 + ((s >> 7) & 63);
        t = ((int64_t)x[i] * 256 - 0) * gain;
        size = ((uint64_t)(t < 0 ? -t : t) + (((uint64_t)1 << shift) >> 1)) >> shift;
        if (size > 32767u) size = 32767u;
        u[n++] = (int16_t)(t < 0 ? -(int32_t)size : (int32_t)size);
    }
}

/* A row for each vector. */
static const int8_t model_vectors[16] MODEL_ROM = {
    76, 20, 15, -60, 36, 56, -4, 28, 48, -47, -5, 105, -25, 24, 52, 91,
};

/* A row for each vector: its coefficients, one for each value. */
static const int16_t model_coef[8] MODEL_ROM = {
    8576, 10532, -23766, 21986, 17174, -15371, -16512, 17735,
};

/* Coefficients of the logarithms of odds. */
static const int16_t model_layer_coef[8] MODEL_ROM = {
    15281, 13457, -30088, 29539, 22534, -20086, -21826, 20942,
};

/* In the units of the sums. */
static const int32_t model_bias[1] MODEL_ROM = {
    -80853821,
};

/* A sum stands for sum * 2^-(exponent + bits). */
static const int8_t model_exponent[1] MODEL_ROM = {
    13,
};

/* Biases of the logarithms of odds. */
static const int32_t model_layer_bias[1] MODEL_ROM = {
    -114928998,
};

/* 2^-x for x = 0, 1/64 .. 1, in 15 bits. */
static const uint16_t model_halves[65] MODEL_ROM = {
    32768, 32415, 32066, 31720, 31379, 31041, 30706, 30376, 30048, 29725, 29405, 29088, 28774, 28464, 28158, 27855,
    27554, 27258, 26964, 26674, 26386, 26102, 25821, 25543, 25268, 24995, 24726, 24460, 24196, 23936, 23678, 23423,
    23170, 22921, 22674, 22430, 22188, 21949, 21713, 21479, 21247, 21019, 20792, 20568, 20347, 20127, 19911, 19696,
    19484, 19274, 19066, 18861, 18658, 18457, 18258, 18061, 17867, 17674, 17484, 17296, 17109, 16925, 16743, 16562,
    16384,
};

/* 2^-D in 15 bits, for D in units of 2^-16, below 16. */
static inline uint32_t model_power_of_half(uint32_t d)
{
    const uint32_t whole = d >> 16, place = (d >> 10) & 63u, rest = d & 1023u;
    const uint32_t high = MODEL_UINT16(model_halves[place]), low = MODEL_UINT16(model_halves[place + 1u]);
    const uint32_t value = high - (((high - low) * rest + 512u) >> 10);
    return (value + (((uint32_t)1 << whole) >> 1)) >> whole;
}

/* The distance to a vector. From the limit on the kernel is 0, and it is the limit. */
static inline uint32_t model_distance(const int16_t u[MODEL_USED], const int8_t *z)
{
#if UINTPTR_MAX > 0xFFFFFFFFu
    uint64_t d = 0;
    for (int n = MODEL_USED; n-- > 0;) {
        const uint32_t t = (uint32_t)u[n] - ((uint32_t)MODEL_INT8(z[n]) << (MODEL_UINT16(model_steps[n]) >> 13));
        d += t * t;
    }
    return d < 67108864u ? (uint32_t)d : 67108864u;
#else
    /* Counted from minus the limit up, the sum overflows where it reaches the limit. */
    uint32_t d = (uint32_t)0 - 67108864u;
    for (int n = 0; n < MODEL_USED; ++n) {
        const uint32_t t = (uint32_t)u[n] - ((uint32_t)MODEL_INT8(z[n]) << (MODEL_UINT16(model_steps[n]) >> 13)), s = t * t;
        d += s;
        if (d < s) return 67108864u;
    }
    return d + 67108864u;
#endif
}

/* Sums of the binary problems, exact: two classes have one, several one for each pair or each class. With l
   (or 0) the logarithms of odds, too. */
static inline void model_sums(const int16_t u[MODEL_USED], int64_t v[MODEL_VALUES], int64_t l[1])
{
    for (int o = 0; o < MODEL_VALUES; ++o) v[o] = MODEL_INT32(model_bias[o]);
    if (l) for (int o = 0; o < 1; ++o) l[o] = MODEL_INT32(model_layer_bias[o]);
    for (int j = 0; j < MODEL_VECTORS; ++j) {
        const uint32_t d = model_distance(u, &model_vectors[j * MODEL_USED]);
        int32_t k;
        if (d == 67108864u) continue;
        k = (int32_t)model_power_of_half((d + 32u) >> 6);
        for (int o = 0; o < MODEL_VALUES; ++o) v[o] += (int32_t)MODEL_INT16(model_coef[j * MODEL_VALUES + o]) * k;
        if (l) for (int o = 0; o < 1; ++o) l[o] += (int32_t)MODEL_INT16(model_layer_coef[j * 1 + o]) * k;
    }
}

/* The class that the values of the binary problems are for. */
static inline int model_winner(const int64_t v[MODEL_VALUES])
{
    return v[0] > 0 ? 1 : 0;
}

/* The number of the class, 0 to MODEL_CLASSES - 1, for a row in integers; its label is model_label(number). */
static inline int model_predict_int16(const int16_t u[MODEL_USED])
{
    int64_t v[MODEL_VALUES];
    model_sums(u, v, 0);
    return model_winner(v);
}

/* The same for a row in floats. */
static inline int model_predict(const float x[MODEL_INPUTS])
{
    int16_t u[MODEL_USED];
    model_to_int16(x, u);
    return model_predict_int16(u);
}

/* Scores as decision_function has them in Python. */
static inline void model_decision(const float x[MODEL_INPUTS], float f[MODEL_OUTPUTS])
{
    int16_t u[MODEL_USED];
    int64_t sums_of[MODEL_VALUES];
    float v[MODEL_VALUES];
    model_to_int16(x, u);
    model_sums(u, sums_of, 0);
    for (int o = 0; o < MODEL_VALUES; ++o) {
        const uint32_t bits = (uint32_t)(112 - MODEL_INT8(model_exponent[o])) << 23;
        float unit;
        memcpy(&unit, &bits, sizeof unit);
        v[o] = (float)sums_of[o] * unit;
    }
    for (int o = 0; o < MODEL_OUTPUTS; ++o) f[o] = v[o];
}

/* The number of the class for readings in integers. */
static inline int model_predict_readings(const int16_t x[MODEL_INPUTS])
{
    int16_t u[MODEL_USED];
    model_from_readings(x, u);
    return model_predict_int16(u);
}

/* The label of a class: here its number. */
static inline int32_t model_label(int number) { return (int32_t)number; }

/* 2^-size in 15 bits, for logarithms of odds in their own units. */
static inline uint32_t model_share(uint64_t size)
{
    if (size >= ((uint64_t)16 << 26)) return 0;
    return model_power_of_half((uint32_t)((size + 512u) >> 10));
}

/* Probabilities of the classes in units of 1/32768, for a row in integers. The class that is predicted is the
   likeliest: it shares with those that would be above it. */
static inline void model_probabilities_int16(const int16_t u[MODEL_USED], uint16_t p[MODEL_CLASSES])
{
    int64_t v[MODEL_VALUES], l[1];
    uint32_t e[MODEL_CLASSES], sum = 0, level, shared = 1;
    int best;
    model_sums(u, v, l);
    e[l[0] < 0 ? 0 : 1] = 32768u;
    e[l[0] < 0 ? 1 : 0] = model_share((uint64_t)(l[0] < 0 ? -l[0] : l[0]));
    for (int c = 0; c < MODEL_CLASSES; ++c) sum += e[c];
    for (int c = 0; c < MODEL_CLASSES; ++c) e[c] = ((e[c] << 15) + (sum >> 1)) / sum;
    best = model_winner(v);
    sum = level = e[best];
    for (;;) {
        int next = -1;
        for (int c = 0; c < MODEL_CLASSES; ++c)
            if (c != best && e[c] <= 32768u && e[c] > level && (next < 0 || e[c] > e[next])) next = c;
        if (next < 0) break;
        sum += e[next];
        level = sum / ++shared;
        e[next] = 65535u; /* has its share */
    }
    for (int c = 0; c < MODEL_CLASSES; ++c)
        p[c] = (uint16_t)(c == best ? level : e[c] >= level ? level - 1u : e[c]);
}

/* The same for a row in floats, as numbers from 0 to 1. */
static inline void model_probabilities(const float x[MODEL_INPUTS], float p[MODEL_CLASSES])
{
    int16_t u[MODEL_USED];
    uint16_t parts[MODEL_CLASSES];
    model_to_int16(x, u);
    model_probabilities_int16(u, parts);
    for (int c = 0; c < MODEL_CLASSES; ++c) p[c] = (float)parts[c] * (1.0f / 32768.0f);
}

#endif /* MODEL_H */
