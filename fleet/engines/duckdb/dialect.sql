-- Functions that the questions in every/ need.
create macro micros(moment) as epoch_us(moment);
create macro idiv(number, by_number) as number // by_number;
create macro as_text(number) as number::varchar;
