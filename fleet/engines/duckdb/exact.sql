-- Exact arithmetic. A quotient is a pair of whole numbers, `num` and `den`. Only
-- printed values are rounded, half away from zero, to four places.

-- A quotient that is not negative, in ten-thousandths; null if the divisor is 0.
create or replace macro ten_thousandths(num, den) as
  case when den > 0 then (num::hugeint * 20000 + den) // (2 * den::hugeint) end;

-- The same as a number with four places.
create or replace macro rounded(num, den) as
  ten_thousandths(num, den)::decimal(34, 0) * 0.0001::decimal(4, 4);

-- A number that sorts quotients: exactly if their denominators are at most 10^9, others
-- unless they differ by less than a trillionth.
create or replace macro order_of(num, den) as
  (num::hugeint // greatest(1, den // 1000000000000)) * 1000000000000000000
  // (den // greatest(1, den // 1000000000000));

-- A common denominator for quotients over these numbers: their least common multiple.
-- If that exceeds 10^12, it is 10^12, and quotients lose the rest.
create or replace macro common(numbers) as coalesce(
  list_reduce(numbers::hugeint[], lambda a, b:
    case when lcm(a, b) <= 1000000000000 then lcm(a, b) end),
  1000000000000);

-- The numerator of num / own over the denominator `den`.
create or replace macro share(num, own, den) as
  (2 * num::hugeint * den + own) // (2 * own::hugeint);

-- percentile_cont(per_mille / 1000) of `n` values. `found` has the highest ones,
-- ascending; the others are zero.
create or replace macro value_at(found, n, place) as
  case when place < n - len(found) then {'num': 0::hugeint, 'den': 1::hugeint}
       else found[place - (n - len(found)) + 1] end;
create or replace macro mixed(a, b, per_mille) as {
  'num': a.num * b.den * (1000 - per_mille) + b.num * a.den * per_mille,
  'den': 1000 * a.den * b.den};
create or replace macro percentile(found, n, per_mille) as mixed(
  value_at(found, n, per_mille * (n - 1) // 1000),
  value_at(found, n, least(per_mille * (n - 1) // 1000 + 1, n - 1)),
  per_mille * (n - 1) % 1000);
