-- Functions that the questions in every/ need.
create temporary function micros(moment timestamp) returns bigint return unix_micros(moment);
create temporary function idiv(number bigint, by_number bigint) returns bigint
  return number div by_number;
create temporary function as_text(number bigint) returns string return cast(number as string);
