-- What each hour tells of its server.
select server, micros(hour) as hour, host, labels, shipper, damage from servers
