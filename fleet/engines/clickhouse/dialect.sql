-- Functions that the questions in every/ need.
create function micros as (moment) -> toUnixTimestamp64Micro(moment);
create function idiv as (number, by_number) -> intDiv(number, by_number);
create function as_text as (number) -> toString(number);
