-- Everybody buys the same item.
begin;
update item set qty = qty - 1 where id = 7;
insert into orders (item_id, customer, ordered_at, note)
values (7, 'customer ' || :client_id, now(), 'flash sale');
commit;
