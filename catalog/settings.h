/*
 * settings.h - settings of the extension
 *
 * BOOL_SETTING(name, variable, default, context, "short", "long")
 *     on or off.
 * INT_SETTING(name, variable, default, min, max, unit, context, "short", "long")
 *     a whole number.
 * REAL_SETTING(name, variable, default, min, max, context, "short", "long")
 *     a number.
 * STRING_SETTING(name, variable, default, context, "short", "long")
 *     a text.
 * ENUM_SETTING(name, variable, default, options, context, "short", "long")
 *     one of the labels that OPTION declares for the same `options`.
 * OPTION(options, label, value)
 *     a label of the enumeration `options`, and its value in C.
 *
 * name: without the prefix "tacho.". unit: one of MS, S, MB, KB, NONE.
 * context: POSTMASTER (set at server start), SIGHUP (reload), SUSET (superuser).
 * Defaults are declared only here. No include guard.
 */
STRING_SETTING(directory, tacho_directory, "tacho", POSTMASTER, "Directory of the history files.", "A relative path is taken from the data directory. The directory is created if it is missing. base, global and the pg_ directories of the server are refused.")
STRING_SETTING(program, tacho_program, "", POSTMASTER, "Path of the tacho program that writes and reads the history.", "Empty means the tacho program beside the postgres program. When it is missing, history is off and statistics go on.")
INT_SETTING(sample_interval, tacho_sample_interval, 1000, 10, 60000, MS, SIGHUP, "Time between two samples of all sessions.", "Every sample stores what each session that is not idle is doing.")
BOOL_SETTING(sample_jitter, tacho_sample_jitter, true, SIGHUP, "Takes each sample at a random moment of its interval.", "A fixed moment would see work that starts on the full second always or never.")
INT_SETTING(flush_interval, tacho_flush_interval, 5000, 100, 600000, MS, SIGHUP, "Time between two synchronisations of the history file to disk.", "A crash of the operating system loses at most this much history; a crash of the server loses nothing.")
INT_SETTING(retention_age, tacho_retention_age, 31622400, 0, 2147483647, S, SIGHUP, "Age after which history is deleted.", "0 keeps history until the size limit is reached.")
INT_SETTING(retention_size, tacho_retention_size, -1, -1, 2147483647, MB, SIGHUP, "Largest size of the history directory.", "-1 means 4GB or 5 percent of the file system, whichever is smaller. 0 switches the limit off.")
INT_SETTING(retention_unshipped, tacho_retention_unshipped, 0, 0, 2147483647, MB, SIGHUP, "Size up to which the history directory may grow while files are not shipped yet.", "Files that retention_age or retention_size would delete stay until \"tacho ship --tell-retention\" has shipped them. When the directory exceeds this size they are deleted all the same, which is logged and marked. 0 deletes them without waiting.")
INT_SETTING(min_free_space, tacho_min_free_space, 1024, -1, 2147483647, MB, SIGHUP, "Free space of the file system below which the oldest history is deleted.", "History is deleted only if that makes the room; otherwise recording pauses. At most half of the history is deleted within a day. 0 switches the limit off, -1 means 1GB.")
ENUM_SETTING(query_text, tacho_query_text, QUERY_TEXT_NORMALIZED, query_text_options, SUSET, "Selects the texts of queries that are recorded.", "normalized records texts with constants replaced by $1, $2 and so on. raw records texts as sent; tacho.statements then shows utility statements as sent, too. off records none.")
OPTION(query_text_options, "normalized", QUERY_TEXT_NORMALIZED)
OPTION(query_text_options, "raw", QUERY_TEXT_RAW)
OPTION(query_text_options, "off", QUERY_TEXT_OFF)
INT_SETTING(text_limit, tacho_text_limit, 16384, 0, 2147483647, KB, SIGHUP, "Largest amount of query texts recorded a day.", "One role in one database may use as many bytes as it leaves for all others. Its long texts are cut first, then left out; both are marked and counted. 0 switches the limit off.")
BOOL_SETTING(plan_text, tacho_plan_text, true, SUSET, "Records the plans of statements.", "The nodes of a plan with their relations, conditions and estimates, once a day for each database, role and query. Values are left out: each constant is a question mark. text_limit limits them, too.")
INT_SETTING(plan_text_rate, tacho_plan_text_rate, 10, 1, 10000, NONE, SIGHUP, "Largest number of plans recorded a second.", "A database may record a tenth of them, and at least one a second. The unused part of the last 30 seconds is added to both numbers.")
BOOL_SETTING(plan_actuals, tacho_plan_actuals, true, SUSET, "Counts the rows of plans.", "An execution of 5 ms or more makes its plan due: the next execution counts the rows of each node, without times. The plan is due again ten minutes later. The plan is then recorded again with these rows. After a long execution the pause is 20 times as long as the execution. Needs plan_text.")
INT_SETTING(max_readers, tacho_max_readers, 16, 1, 1024, NONE, SIGHUP, "Largest number of questions to the history that run at the same time.", "Each question is a process with up to four threads. One more question gets an error. All questions share reader_memory.")
INT_SETTING(reader_memory, tacho_reader_memory, 8192, 1, 2147483647, MB, SIGHUP, "Memory of all questions to the history that run at the same time.", "Each question may use an equal share: reader_memory divided by max_readers. A question that needs more ends with an error.")
INT_SETTING(name_limit, tacho_name_limit, 2048, 0, 65536, KB, SIGHUP, "Largest amount of client-given names recorded a day.", "The names of a role may have as many bytes as are left for other roles, and a quarter of that in ten minutes. Names beyond it are recorded as (other), marked and counted. 0 switches the limit off.")
STRING_SETTING(comment_tags, tacho_comment_tags, "application,controller,action,route,job,release", SIGHUP, "Keys of tags that are recorded from the comments of statements.", "Tags are read from comments at both ends of a text: /*controller='orders'*/ (sqlcommenter) or /*controller:orders*/ (Marginalia). A value has at most 64 bytes. name_limit limits them, too. Empty switches tags off. Needs statements.")
BOOL_SETTING(cpu_kind, tacho_cpu_kind, true, SIGHUP, "Tells running from runnable and uninstrumented sessions.", "Reads /proc for sessions that are active without a wait event.")
BOOL_SETTING(schema_changes, tacho_schema_changes, true, SIGHUP, "Marks changes of the schema.", "Each CREATE, ALTER, DROP, GRANT or TRUNCATE is a marker with its object, role, database and application, but without its text. Temporary objects have none. A minute has at most 240 markers; further changes are counted.")
REAL_SETTING(max_cpu, tacho_max_cpu, 2.0, 0.0, 100.0, SIGHUP, "Largest share of one CPU the sampler uses, in percent.", "Beyond it the sample interval is doubled and the history marks it. 0 switches the limit off.")
INT_SETTING(server_interval, tacho_server_interval, 10000, 0, 3600000, MS, SIGHUP, "Time between two measurements of the server as a whole.", "0 switches them off.")
INT_SETTING(statements_interval, tacho_statements_interval, 60000, 0, 3600000, MS, SIGHUP, "Time between two records of the statement statistics.", "0 switches them off.")
INT_SETTING(tables_interval, tacho_tables_interval, 300000, 0, 3600000, MS, SIGHUP, "Time between two records of the statistics of tables and indexes.", "Each record has the 100 tables and indexes that read and wrote most, and the sum of all others. 0 switches them off.")
INT_SETTING(catalog_interval, tacho_catalog_interval, 0, 0, 86400000, MS, SIGHUP, "Time between two readings of names, kinds and sizes of tables and indexes.", "A worker connects to each database that has done something, one after the other, for at most two seconds each. 0 switches this off: the history then has no sizes, and indexes have no names.")
INT_SETTING(statements_full_age, tacho_statements_full_age, 1209600, 0, 2147483647, S, SIGHUP, "Age up to which the history of statements keeps every interval.", "Older intervals are merged into intervals of 10 minutes. 0 keeps them.")
INT_SETTING(statements_ten_minutes_age, tacho_statements_ten_minutes_age, 5184000, 0, 2147483647, S, SIGHUP, "Age up to which the history of statements keeps intervals of 10 minutes.", "Older intervals are merged into intervals of 1 hour. 0 keeps them.")
BOOL_SETTING(statements, tacho_statements, true, POSTMASTER, "Counts what every query costs.", "When off, no shared memory is reserved for statement statistics.")
INT_SETTING(statements_max, tacho_statements_max, 10000, 100, 1073741823, NONE, SIGHUP, "Largest number of statements that are counted separately.", "Beyond 95 percent of it, statements that have not been used for long make room for new ones.")
INT_SETTING(statements_max_reserved, tacho_statements_max_reserved, -1, -1, 1073741823, NONE, POSTMASTER, "Number of statements for which memory is reserved.", "A reload can raise statements_max up to this number. -1 means twice the value of statements_max at server start. A statement takes about 1 kB, from the time that it is first counted.")
INT_SETTING(query_text_memory, tacho_query_text_memory, 16384, 64, 2147483647, KB, SIGHUP, "Memory for texts of statements.", "When it is full, texts of statements that are not in use make room for new ones. One text may have a 16th of it; a longer one is cut.")
INT_SETTING(query_text_memory_reserved, tacho_query_text_memory_reserved, -1, -1, 2147483647, KB, POSTMASTER, "Memory reserved for texts of statements.", "A reload can raise query_text_memory up to this size. -1 means twice the value of query_text_memory at server start.")
ENUM_SETTING(statements_track, tacho_statements_track, STATEMENTS_TRACK_TOP, statements_track_options, SUSET, "Selects the statements that are counted.", "top counts statements that clients send, all also statements inside functions, none nothing.")
OPTION(statements_track_options, "none", STATEMENTS_TRACK_NONE)
OPTION(statements_track_options, "top", STATEMENTS_TRACK_TOP)
OPTION(statements_track_options, "all", STATEMENTS_TRACK_ALL)
BOOL_SETTING(statements_track_utility, tacho_statements_track_utility, true, SUSET, "Counts utility commands.", "Utility commands are all but SELECT, INSERT, UPDATE, DELETE and MERGE.")
BOOL_SETTING(statements_track_planning, tacho_statements_track_planning, false, SUSET, "Counts and times the planning of statements.", "Costs two readings of the clock for each planning.")
ENUM_SETTING(statements_cpu, tacho_statements_cpu, STATEMENTS_CPU_SAMPLED, statements_cpu_options, SUSET, "Selects the executions whose CPU time and I/O are measured.", "sampled measures every execution of 4.1 ms or more, and every execution of a statement whose mean is that long. Other statements begin with 16 measured executions. Later ones are drawn: one in 4 up to 64, one in 16 up to 1,024, then one in 64. If the mean is below 0.2 ms, an execution counts as four here.")
OPTION(statements_cpu_options, "off", STATEMENTS_CPU_OFF)
OPTION(statements_cpu_options, "sampled", STATEMENTS_CPU_SAMPLED)
OPTION(statements_cpu_options, "always", STATEMENTS_CPU_ALWAYS)
BOOL_SETTING(statements_histogram, tacho_statements_histogram, true, SUSET, "Counts executions by duration.", "The percentiles of tacho.statements come from it.")
BOOL_SETTING(statements_save, tacho_statements_save, true, SIGHUP, "Keeps statement statistics across restarts of the server.", "They are written at shutdown and every statements_save_interval.")
INT_SETTING(statements_save_interval, tacho_statements_save_interval, 300000, 0, 86400000, MS, SIGHUP, "Time between two saves of the statement statistics.", "A crash of the server loses at most the counts since the last save. 0 saves at shutdown only.")
BOOL_SETTING(pg_stat_statements, tacho_pg_stat_statements, false, POSTMASTER, "Takes the place of pg_stat_statements.", "Accepts its settings; tacho.install_pg_stat_statements() makes its view and functions show the statistics of tacho.")
