/* As much of Arduino as the example needs. On a computer the serial monitor is standard input and output. */
#pragma once
#include <stdint.h>

#define A0 14
inline int analogRead(int) { return 512; }
inline void delay(unsigned long) {}

#if defined(__AVR__)
struct Monitor {
    void begin(long);
    int available(), peek(), read();
    float parseFloat();
    void print(long), print(int), print(char), println(double, int);
};
extern Monitor Serial;
#else
#include <stdio.h>
static struct Monitor {
    void begin(long) {}
    int peek()
    {
        const int c = getchar();
        return c == EOF ? -1 : ungetc(c, stdin);
    }
    int available() { return peek() >= 0; }
    int read() { return getchar(); }
    float parseFloat()
    {
        float value = 0;
        return scanf("%f", &value) == 1 ? value : 0;
    }
    void print(int number) { printf("%d", number); }
    void print(char c) { putchar(c); }
    void println(double number, int digits) { printf("%.*f\n", digits, number); }
} Serial;
#endif
