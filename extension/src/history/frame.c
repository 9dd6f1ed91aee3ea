/*
 * frame.c
 *	  Builds frames as docs/format.md describes them.
 *
 * Copyright (c) 2026, tacho contributors
 */
#include "postgres.h"

#include "port/pg_crc32c.h"
#include "utils/memutils.h"

#include "history/frame.h"

#define FRAME_VERSION		1
#define FRAME_HEADER_BYTES	40
#define CODING_SPARSE		16
#define CODING_BYTES		32
#define TABLES				(MODEL_MAX_TABLE + 1)

static const uint8 frame_magic[4] = {0xF1, 0x54, 0x43, 0x48};

struct Frame
{
	MemoryContext context;
	UnixMs		base;
	Section    *sections[TABLES];	/* by table id, or NULL */
};

Frame *
frame_create(void)
{
	Frame	   *frame = palloc0(sizeof(Frame));

	frame->context = CurrentMemoryContext;
	return frame;
}

void
frame_reset(Frame *frame, UnixMs base)
{
	frame->base = base;
	for (int i = 0; i < TABLES; i++)
	{
		Section    *section = frame->sections[i];

		if (section == NULL)
			continue;
		section->rows = 0;
		for (int column = 0; column <= section->last_column; column++)
			if (section->bytes[column])
				resetStringInfo(section->bytes[column]);
	}
}

UnixMs
frame_base(const Frame *frame)
{
	return frame->base;
}

Section *
frame_section(Frame *frame, ModelTable table)
{
	Assert(table < TABLES);
	if (frame->sections[table] == NULL)
	{
		Section    *section = MemoryContextAllocZero(frame->context,
													 sizeof(Section));

		section->table = table;
		frame->sections[table] = section;
	}
	return frame->sections[table];
}

int
frame_rows(Frame *frame, ModelTable table)
{
	return frame->sections[table] ? frame->sections[table]->rows : 0;
}

bool
frame_is_empty(const Frame *frame)
{
	for (int i = 0; i < TABLES; i++)
		if (frame->sections[i] && frame->sections[i]->rows > 0)
			return false;
	return true;
}

static void
section_grow(Section *section)
{
	int			capacity = Max(64, section->capacity * 2);

	for (int column = 0; column <= section->last_column; column++)
		if (section->numbers[column])
			section->numbers[column] = repalloc_huge(section->numbers[column],
													 sizeof(uint64) * capacity);
	section->capacity = capacity;
}

int
section_add(Section *section)
{
	int			row = section->rows;

	if (row >= section->capacity)
		section_grow(section);
	for (int column = 0; column <= section->last_column; column++)
		if (section->numbers[column])
			section->numbers[column][row] = 0;
	section->rows++;
	return row;
}

/* Adds a column; the rows before the current one get zeros. */
static void
section_add_column(Section *section, int column)
{
	MemoryContext context = GetMemoryChunkContext(section);
	Size		size = sizeof(uint64) * section->capacity;

	Assert(column > 0 && column <= MODEL_MAX_COLUMN);
	section->last_column = Max(section->last_column, column);
	section->numbers[column] = MemoryContextAllocHuge(context, size);
	memset(section->numbers[column], 0, size);
}

void
section_set(Section *section, int row, int column, uint64 value)
{
	if (section->numbers[column] == NULL)
	{
		if (value == 0)
			return;
		section_add_column(section, column);
	}
	section->numbers[column][row] = value;
}

uint64
section_get(const Section *section, int row, int column)
{
	return section->numbers[column] ? section->numbers[column][row] : 0;
}

void
section_set_bytes(Section *section, int column, const char *bytes, int length)
{
	if (section->bytes[column] == NULL)
	{
		MemoryContext context = GetMemoryChunkContext(section);
		MemoryContext previous = MemoryContextSwitchTo(context);

		section->bytes[column] = makeStringInfo();
		MemoryContextSwitchTo(previous);
	}
	section_set(section, section->rows - 1, column, length);
	appendBinaryStringInfo(section->bytes[column], bytes, length);
}

uint64
frame_int(int64 value)
{
	return ((uint64) value << 1) ^ (uint64) (value >> 63);
}

uint64
frame_time(const Frame *frame, UnixMs time)
{
	return time == 0 ? 0 : frame_int(time - frame->base) + 1;
}

uint64
frame_time_us(UnixUs time)
{
	return time == 0 ? 0 : frame_int(time) + 1;
}

uint64
frame_timestamp(const Frame *frame, TimestampTz time)
{
	return time == 0 ? 0 : frame_time(frame, (time + TACHO_EPOCH_OFFSET_US) / 1000);
}

/* Appends the low `width` bytes of a number, little-endian. */
static void
put_number(StringInfo out, uint64 value, int width)
{
	char		bytes[8];

	for (int i = 0; i < width; i++)
		bytes[i] = (char) (value >> (8 * i));
	appendBinaryStringInfo(out, bytes, width);
}

/* Appends numbers of one width; on a little-endian machine a plain copy. */
static void
put_numbers(StringInfo out, const uint64 *values, int count, int width)
{
	char	   *to;

	enlargeStringInfo(out, count * width);
	to = out->data + out->len;
	switch (width)
	{
#ifndef WORDS_BIGENDIAN
		case 1:
			for (int i = 0; i < count; i++)
				to[i] = (char) values[i];
			break;
		case 2:
			for (int i = 0; i < count; i++)
			{
				uint16		value = (uint16) values[i];

				memcpy(to + 2 * i, &value, 2);
			}
			break;
		case 4:
			for (int i = 0; i < count; i++)
			{
				uint32		value = (uint32) values[i];

				memcpy(to + 4 * i, &value, 4);
			}
			break;
		case 8:
			memcpy(to, values, sizeof(uint64) * count);
			break;
#endif
		default:
			for (int i = 0; i < count; i++)
				for (int byte = 0; byte < width; byte++)
					to[width * i + byte] = (char) (values[i] >> (8 * byte));
	}
	out->len += count * width;
	out->data[out->len] = '\0';
}

static int
number_width(uint64 all_bits)
{
	if (all_bits <= PG_UINT8_MAX)
		return 1;
	if (all_bits <= PG_UINT16_MAX)
		return 2;
	return all_bits <= PG_UINT32_MAX ? 4 : 8;
}

static void
put_sparse(StringInfo out, const uint64 *values, int rows, int used, int width)
{
	put_number(out, used, 4);
	for (int i = 0; i < rows; i++)
		if (values[i] != 0)
			put_number(out, i, 4);
	for (int i = 0; i < rows; i++)
		if (values[i] != 0)
			put_number(out, values[i], width);
}

/* Appends a column of numbers. Returns false if all are zero. */
static bool
put_column(StringInfo out, const Section *section, int column)
{
	const uint64 *values = section->numbers[column];
	uint64		all_bits = 0;
	int			used = 0;
	int			width;

	for (int i = 0; i < section->rows; i++)
	{
		all_bits |= values[i];
		used += values[i] != 0;
	}
	if (used == 0)
		return false;
	width = number_width(all_bits);
	put_number(out, column, 1);
	if (section->bytes[column])
	{
		width = Min(width, 4);
		put_number(out, CODING_BYTES + width, 1);
		put_numbers(out, values, section->rows, width);
		appendBinaryStringInfo(out, section->bytes[column]->data,
							   section->bytes[column]->len);
	}
	else if (4 + (int64) used * (4 + width) < (int64) section->rows * width)
	{
		put_number(out, CODING_SPARSE + width, 1);
		put_sparse(out, values, section->rows, used, width);
	}
	else
	{
		put_number(out, width, 1);
		put_numbers(out, values, section->rows, width);
	}
	return true;
}

static void
put_section(StringInfo out, const Section *section)
{
	int			head = out->len;
	int			columns = 0;

	put_number(out, section->table, 1);
	put_number(out, 0, 1);		/* columns, filled in below */
	put_number(out, 0, 2);
	put_number(out, section->rows, 4);
	for (int column = 1; column <= section->last_column; column++)
		if (section->numbers[column])
			columns += put_column(out, section, column);
	out->data[head + 1] = (char) columns;
}

/* Overwrites 4 bytes at an offset. */
static void
patch_u32(StringInfo out, int offset, uint32 value)
{
	for (int i = 0; i < 4; i++)
		out->data[offset + i] = (char) (value >> (8 * i));
}

static void
put_header(StringInfo out, const Frame *frame, uint8 kind, uint64 incarnation,
		   uint64 sequence)
{
	appendBinaryStringInfo(out, (const char *) frame_magic, 4);
	put_number(out, kind, 1);
	put_number(out, FRAME_VERSION, 1);
	put_number(out, 0, 2);
	put_number(out, 0, 4);		/* length, filled in later */
	put_number(out, 0, 4);		/* sections, filled in later */
	put_number(out, incarnation, 8);
	put_number(out, sequence, 8);
	put_number(out, (uint64) frame->base, 8);
	Assert(out->len == FRAME_HEADER_BYTES);
}

bool
frame_encode(Frame *frame, uint8 kind, uint64 incarnation, uint64 sequence,
			 StringInfo out)
{
	int			sections = 0;
	pg_crc32c	crc;

	resetStringInfo(out);
	put_header(out, frame, kind, incarnation, sequence);
	for (int i = 0; i < TABLES; i++)
	{
		if (frame->sections[i] == NULL || frame->sections[i]->rows == 0)
			continue;
		put_section(out, frame->sections[i]);
		sections++;
		if (out->len - FRAME_HEADER_BYTES > FRAME_MAX_PAYLOAD)
		{
			resetStringInfo(out);
			return false;
		}
	}
	patch_u32(out, 8, out->len - FRAME_HEADER_BYTES);
	patch_u32(out, 12, sections);
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, out->data, out->len);
	FIN_CRC32C(crc);
	put_number(out, crc, 4);
	return true;
}
