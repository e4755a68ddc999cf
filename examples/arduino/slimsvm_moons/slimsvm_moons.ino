/* Two moons on an Arduino: type two numbers into the serial monitor (115200 baud), such as "0.5 0.2", and read the
   class and its probability. With FROM_PINS the numbers come from A0 and A1 instead, twice a second.

   model.h was made by examples/arduino/make_header.py. All of it is integers but for the conversion of the row, and its
   tables stay in flash on AVR boards. */
#include "model.h"

#define FROM_PINS 0

void setup()
{
    Serial.begin(115200);
}

void loop()
{
    float x[MODEL_INPUTS], p[MODEL_CLASSES];
#if FROM_PINS
    for (int i = 0; i < MODEL_INPUTS; ++i)
        x[i] = -2.0f + 5.0f * (float)analogRead(A0 + i) / 1023.0f; /* the moons lie between -2 and 3 */
    delay(500);
#else
    if (Serial.available() == 0) return;
    for (int i = 0; i < MODEL_INPUTS; ++i) x[i] = Serial.parseFloat();
    while (Serial.available() > 0 && Serial.peek() <= ' ') Serial.read(); /* the rest of the line */
#endif
    const int number = model_predict(x);
    model_probabilities(x, p);
    Serial.print(model_label(number));
    Serial.print(' ');
    Serial.println(p[number], 4);
}
