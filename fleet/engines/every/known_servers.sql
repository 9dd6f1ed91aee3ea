-- Attributes of the server in each hour.
select server, micros(hour) as hour, host, labels, shipper, damage from servers
