/* Answers rows that lie in flash and prints answer and clock cycles of each; simavr ends when nothing can wake it. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>
#include <stdint.h>

#include "rows.h"

int answer(const ROW *x);

__attribute__((noinline)) static int nothing(const ROW *x)
{
    __asm__ volatile("" : : "r"(x));
    return 0;
}

static void print(uint16_t number, char end)
{
    char digits[5], n = 0;
    do {
        digits[(uint8_t)n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (n) {
        while (!(UCSR0A & (1 << UDRE0))) {
        }
        UDR0 = (uint8_t)digits[(uint8_t)--n];
    }
    while (!(UCSR0A & (1 << UDRE0))) {
    }
    UDR0 = (uint8_t)end;
}

/* Timer 1 counts every 64th clock cycle. */
static uint16_t ticks_of(int (*f)(const ROW *), const ROW *x, int *result)
{
    const uint16_t start = TCNT1;
    *result = f(x);
    return (uint16_t)(TCNT1 - start);
}

int main(void)
{
    static ROW x[LENGTH];
    TCCR1B = 3;
    UCSR0B = 1 << TXEN0;
    for (uint16_t i = 0; i < ROWS; ++i) {
        int found;
        uint16_t ticks;
        memcpy_P(x, &rows[i * LENGTH], sizeof x);
        ticks = ticks_of(answer, x, &found);
        ticks = (uint16_t)(ticks - ticks_of(nothing, x, &(int){0}));
        print((uint16_t)found, ' ');
        print(ticks, '\n');
    }
    cli();
    sleep_enable();
    sleep_cpu();
    return 0;
}
