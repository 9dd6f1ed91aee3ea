/*
 * 12_texts.sql - texts of statements, and names, in the form that is stored
 *
 * Encodings. The server shows names of databases and roles, and texts of sessions of
 * other databases, in the bytes of the client that wrote them. A text that is not valid
 * in this database would be an error for readers and for the restore of a dump.
 *
 * Literals. pg_stat_statements leaves constants in the texts of utility statements, and
 * in a planned statement whose entry was evicted while it was executed. In these texts,
 * and in texts of sessions, literals become $n, and comments are left out. Planned
 * statements keep two kinds of integers, as on the server: positions of columns (ORDER
 * BY 2), and sizes of types (numeric(10, 2)). The text is read once, token by token, as
 * the server's scanner does. A literal that does not end hides the rest of the text.
 */
create function tacho._is_valid(body text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
	perform convert_to(body, getdatabaseencoding());
	return true;
exception when character_not_in_repertoire then
	return false;
end
$$;
comment on function tacho._is_valid is 'true for a text in the encoding of this database';

-- Decodes character by character: the shortest valid bytes are one character. A
-- character that this database lacks, and a byte that is not part of a character, are
-- shown as unknown.
create function tacho._decoded(bytes bytea, encoding name)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	c_longest constant integer := 4;
	c_unknown constant text := case getdatabaseencoding() when 'UTF8' then convert_from('\xefbfbd', 'UTF8') else '?' end;
	v_text text := '';
	v_at integer := 1;
	v_length integer;
	v_char text;
begin
	while v_at <= length(bytes) loop
		v_char := c_unknown;
		v_length := 1;
		for n in 1 .. c_longest loop
			if get_byte(bytes, v_at - 1) < 128 then
				v_char := chr(get_byte(bytes, v_at - 1));
				exit;
			end if;
			begin
				v_char := convert_from(substr(bytes, v_at, n), encoding);
				v_length := n;
				exit;
			exception
				when character_not_in_repertoire then
					null;
				when untranslatable_character or undefined_function then
					v_length := n;
					exit;
			end;
		end loop;
		v_text := v_text || v_char;
		v_at := v_at + v_length;
	end loop;
	return v_text;
end
$$;
comment on function tacho._decoded is 'bytes as text, with replacement characters for those that cannot be shown';

-- Without an encoding, as for names of databases and roles, this database's encoding is
-- assumed.
create function tacho._shown(body text, encoding name default null)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
	v_encoding constant name := coalesce(nullif(encoding, 'SQL_ASCII'), getdatabaseencoding());
	v_bytes bytea;
begin
	if body is null or v_encoding = getdatabaseencoding() and tacho._is_valid(body) then
		return body;
	end if;
	v_bytes := replace(body, '\', '\\')::bytea;
	return convert_from(v_bytes, v_encoding);
exception when character_not_in_repertoire or untranslatable_character or undefined_function then
	return tacho._decoded(v_bytes, v_encoding);
end
$$;
comment on function tacho._shown is 'a text of another encoding, so that it can be stored here';

create function tacho._tokens(body text)
returns text[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select array_agg(m[1])
	from regexp_matches(body,
		-- words; numbers; single characters that may begin or end a literal; everything
		-- else
		'(?:[A-Za-z_]|[^\x01-\x7f])(?:[0-9A-Za-z_]|[^\x01-\x7f])*' ||
		'|[.]?[0-9](?:[eE][+-][0-9]|[0-9A-Za-z_.]|[^\x01-\x7f])*' ||
		'|[$''"\\/*.\n\r-]' ||
		'|[\x01-\x09\x0b\x0c\x0e-\x20!#%&()+,:;<=>?@[\]^`{|}~\x7f]+', 'g') m;
end;
comment on function tacho._tokens is 'a statement cut into words, numbers, single characters that begin or end literals and comments, and what is between';

-- kind: word, name (in quotes), string, number, parameter, comment, other; lexeme is
-- NULL for strings and comments.
create function tacho._lexemes(body text)
returns table (kind text, lexeme text)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
	c_word constant text := '^(?:[A-Za-z_]|[^\x01-\x7f])';
	c_prefixes constant text[] := '{e, E, b, B, x, X, n, N}';
	t constant text[] := tacho._tokens(body);
	i integer := 1;
	v_depth integer := 0;
	v_has_escapes boolean;
	v_tag text;
begin
	while t[i] is not null loop
		lexeme := t[i];
		if t[i] = '''' or t[i] = any (c_prefixes) and t[i + 1] = '''' then
			kind := 'string';
			v_has_escapes := t[i] in ('e', 'E');
			if t[i] <> '''' then
				i := i + 1;
			end if;
			loop
				i := i + 1;
				exit when t[i] is null or t[i] = '''' and t[i + 1] is distinct from '''';
				if t[i] = '''' or t[i] = '\' and t[i + 1] in ('\', '''') then
					if t[i] = '\' and t[i + 1] = '''' and not v_has_escapes then
						-- a setting of that session says whether it ends here
						i := cardinality(t);
					end if;
					i := i + 1;
				end if;
			end loop;
		elsif t[i] = '$' and t[i + 1] ~ '^[0-9]+$' then
			kind := 'parameter';
			i := i + 1;
			lexeme := '$' || t[i];
		elsif t[i] = '$' and (t[i + 1] = '$' or t[i + 1] ~ c_word and t[i + 2] = '$') then
			kind := 'string';
			v_tag := case when t[i + 1] <> '$' then t[i + 1] end;
			i := i + 1 + (v_tag is not null)::integer;
			loop
				i := i + 1;
				exit when t[i] is null or t[i] = '$' and (v_tag is null or t[i + 1] = v_tag) and t[i + 1 + (v_tag is not null)::integer] = '$';
			end loop;
			i := i + 1 + (v_tag is not null)::integer;
		elsif t[i] ~ '^[.]?[0-9]' then
			kind := 'number';
		elsif t[i] ~ c_word then
			kind := 'word';
			while t[i + 1] = '$' or t[i] = '$' and (t[i + 1] ~ c_word or t[i + 1] ~ '^[0-9]') loop
				i := i + 1;
				lexeme := lexeme || t[i];
			end loop;
		elsif t[i] = '"' then
			kind := 'name';
			loop
				i := i + 1;
				exit when t[i] is null;
				lexeme := lexeme || t[i];
				exit when t[i] = '"';
			end loop;
		elsif t[i] = '-' and t[i + 1] = '-' then
			kind := 'comment';
			while t[i + 1] not in (e'\n', e'\r') loop
				i := i + 1;
			end loop;
		elsif t[i] = '/' and t[i + 1] = '*' then
			kind := 'comment';
			loop
				if concat(t[i], t[i + 1]) in ('/*', '*/') then
					v_depth := v_depth + case t[i] when '/' then 1 else -1 end;
					i := i + 1;
				end if;
				exit when v_depth = 0 or t[i] is null;
				i := i + 1;
			end loop;
		else
			kind := 'other';
		end if;
		return next;
		i := i + 1;
	end loop;
end
$$;
comment on function tacho._lexemes is 'a statement cut into words, names, literals and comments';

-- The place of the next lexeme in a planned statement says whether an integer there is
-- kept. The place "begins" is after BY, or after a comma of its list; "item" is further on
-- in an item. The place "type" is after the name of a type, "sizes" in its parentheses.
create function tacho._place_after(place text, kind text, lexeme text)
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
	c_sized constant text[] := '{bit, char, character, dec, decimal, float, interval, nchar, numeric, time, timestamp, varchar, varying}';
	v_place text := place;
	v_char text;
begin
	case
		when kind = 'comment' then
			return place;
		when kind = 'word' and lower(lexeme) = 'by' then
			return 'begins';
		when kind = 'word' and lower(lexeme) = any (c_sized) then
			return 'type';
		when kind in ('word', 'name', 'parameter') then
			return case when place in ('begins', 'item') then 'item' else 'elsewhere' end;
		when kind = 'number' then
			return case place when 'sizes' then 'sizes' when 'begins' then 'item' else 'elsewhere' end;
		when kind = 'string' then
			return 'elsewhere';
		else
			null;
	end case;
	foreach v_char in array regexp_split_to_array(lexeme, '') loop
		v_place := case
			when v_char ~ '\s' then v_place
			when v_place = 'type' and v_char = '(' or v_place = 'sizes' and v_char = ',' then 'sizes'
			when v_place in ('begins', 'item') and v_char = ',' then 'begins'
			when v_place in ('begins', 'item') and v_char = '.' then 'item'
			else 'elsewhere'
		end;
	end loop;
	return v_place;
end
$$;
comment on function tacho._place_after is 'the place behind a lexeme: whether an integer may be a position or a size there';

-- A statement is planned if it begins with one of these words and makes no table.
create function tacho._mask(body text, out masked text, out is_planned boolean, out literals integer)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
	c_planned constant text[] := '{select, insert, update, delete, merge, with, values, table}';
	c_most_columns constant integer := 1664;
	v_kinds text[];
	v_lexemes text[];
	v_words text[];
	v_parameters numeric;
	v_place text := 'elsewhere';
begin
	select array_agg(l.kind order by l.n), array_agg(l.lexeme order by l.n), array_agg(lower(l.lexeme) order by l.n) filter (where l.kind = 'word'),
		coalesce(max(substr(l.lexeme, 2)::numeric) filter (where l.kind = 'parameter'), 0)
	into v_kinds, v_lexemes, v_words, v_parameters
	from tacho._lexemes(body) with ordinality l (kind, lexeme, n);
	is_planned := coalesce(v_words[1] = any (c_planned) and (v_words[1] = 'insert' or 'into' <> all (v_words)), false);
	masked := '';
	literals := 0;
	for i in 1 .. coalesce(cardinality(v_kinds), 0) loop
		if v_kinds[i] = 'comment' then
			masked := masked || ' ';
		elsif v_kinds[i] = 'string' or v_kinds[i] = 'number' and not (is_planned and v_lexemes[i] ~ '^[0-9]+$'
			and (v_place = 'sizes' or v_place = 'begins' and v_lexemes[i]::numeric <= c_most_columns))
		then
			literals := literals + 1;
			masked := masked || '$' || v_parameters + literals;
		else
			masked := masked || v_lexemes[i];
		end if;
		v_place := tacho._place_after(v_place, v_kinds[i], v_lexemes[i]);
	end loop;
	masked := btrim(masked);
end
$$;
comment on function tacho._mask is 'a statement with $n in place of its literals, and without comments; how many literals it has';

create function tacho._masked(body text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
return (tacho._mask(body)).masked;
comment on function tacho._masked is 'a statement with $n in place of its literals, and without comments';

create function tacho._without_constants(body text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	select case when m.is_planned and m.literals = 0 then body else m.masked end from tacho._mask(body) m;
end;
comment on function tacho._without_constants is 'a text of pg_stat_statements as it is kept: unchanged if a planned statement has no literal';
