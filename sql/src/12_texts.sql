/*
 * 12_texts.sql - texts of statements, and names, in the form that is stored
 *
 * Encodings. The server shows names of databases and roles, and texts of sessions of
 * other databases, in the bytes of the client that wrote them. A text that is not valid
 * in this database would be an error for readers and for the restore of a dump.
 *
 * Literals. pg_stat_statements leaves constants of utility statements in their texts.
 * In these texts, and in texts of sessions, every literal becomes $n, and comments are
 * left out. The text is read once, token by token, as the server's scanner does. A
 * literal that does not end hides the rest of the text.
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

-- Statements that pg_stat_statements shows without constants stay unchanged: they begin
-- with one of these words, have no string, and make no table.
create function tacho._is_utility(body text)
returns boolean
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	with l as materialized (
		select * from tacho._lexemes(body) with ordinality l (kind, lexeme, n)
	), first as (
		select lower(l.lexeme) as word from l where l.kind = 'word' order by l.n limit 1
	)
	select not exists (
			select from first f where f.word in ('select', 'insert', 'update', 'delete', 'merge', 'with', 'values', 'table'))
		or exists (select from l where l.kind = 'string')
		or exists (select from l, first f where f.word <> 'insert' and l.kind = 'word' and lower(l.lexeme) = 'into');
end;
comment on function tacho._is_utility is 'true when constants are part of the text of a statement';

create function tacho._masked(body text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
begin atomic
	with l as materialized (
		select *, count(*) filter (where l.kind in ('string', 'number')) over (order by l.n) as literals
		from tacho._lexemes(body) with ordinality l (kind, lexeme, n)
	), p as (
		select coalesce(max(substr(l.lexeme, 2)::numeric), 0) as parameters from l where l.kind = 'parameter'
	)
	select coalesce(btrim(string_agg(
		case
			when l.kind in ('string', 'number') then '$' || p.parameters + l.literals
			when l.kind = 'comment' then ' '
			else l.lexeme
		end, '' order by l.n)), '')
	from l, p;
end;
comment on function tacho._masked is 'a statement with $n in place of every literal, and without comments';

create function tacho._without_constants(body text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
return case when tacho._is_utility(body) then tacho._masked(body) else body end;
comment on function tacho._without_constants is 'a text of pg_stat_statements as it is kept';
