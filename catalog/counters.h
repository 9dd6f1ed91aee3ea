/*
 * counters.h - counters of the statements engine
 *
 * COUNTER(id, name, ctype, unit, kind, group, since, "doc")
 *     one counter of an entry. It is a member of the shared struct and a column
 *     of the view tacho.statements. In the tape it is column `id` of the table
 *     statement_stats; ids below 16 are the keys declared in samples.h.
 *     ctype: int64 or double.
 *     unit: one, ms, bytes, blocks, us.
 *     kind:
 *       SUM        a counter that only grows.
 *       MIN, MAX   extremes of one execution. The history does not store them,
 *                  because a difference of extremes means nothing.
 *       SQUARE     a sum of squares. The view computes mean and deviation from it.
 *       HISTOGRAM  the first of 24 logarithmic buckets.
 *       LONG       the first of 12 buckets that divide the last one of HISTOGRAM.
 *     group: the counters that one execution changes together. A group that an
 *     execution does not change costs it nothing.
 *     since: the first PostgreSQL major that has the counter, 15 = all.
 *
 * Times are stored in the history in units of 10 us, squares in hundredths of
 * a square millisecond. No include guard.
 */
COUNTER(16, plans, int64, one, SUM, plan, 15, "number of times planned")
COUNTER(17, total_plan_time, double, ms, SUM, plan, 15, "time spent planning")
COUNTER(18, min_plan_time, double, ms, MIN, plan, 15, "shortest planning")
COUNTER(19, max_plan_time, double, ms, MAX, plan, 15, "longest planning")
COUNTER(20, square_plan_time, double, ms, SQUARE, plan, 15, "sum of squares of planning times")
COUNTER(21, calls, int64, one, SUM, exec, 15, "number of executions")
COUNTER(22, total_exec_time, double, ms, SUM, exec, 15, "time spent executing")
COUNTER(23, min_exec_time, double, ms, MIN, exec, 15, "shortest execution")
COUNTER(24, max_exec_time, double, ms, MAX, exec, 15, "longest execution")
COUNTER(25, square_exec_time, double, ms, SQUARE, exec, 15, "sum of squares of execution times")
COUNTER(26, rows, int64, one, SUM, exec, 15, "rows retrieved or affected")
COUNTER(27, shared_blks_hit, int64, blocks, SUM, buffers, 15, "shared blocks found in the cache")
COUNTER(28, shared_blks_read, int64, blocks, SUM, buffers, 15, "shared blocks read")
COUNTER(29, shared_blks_dirtied, int64, blocks, SUM, buffers, 15, "shared blocks dirtied")
COUNTER(30, shared_blks_written, int64, blocks, SUM, buffers, 15, "shared blocks written")
COUNTER(31, local_blks_hit, int64, blocks, SUM, other_blocks, 15, "local blocks found in the cache")
COUNTER(32, local_blks_read, int64, blocks, SUM, other_blocks, 15, "local blocks read")
COUNTER(33, local_blks_dirtied, int64, blocks, SUM, other_blocks, 15, "local blocks dirtied")
COUNTER(34, local_blks_written, int64, blocks, SUM, other_blocks, 15, "local blocks written")
COUNTER(35, temp_blks_read, int64, blocks, SUM, other_blocks, 15, "temporary blocks read")
COUNTER(36, temp_blks_written, int64, blocks, SUM, other_blocks, 15, "temporary blocks written")
COUNTER(37, shared_blk_read_time, double, ms, SUM, io_time, 15, "time reading shared blocks (track_io_timing)")
COUNTER(38, shared_blk_write_time, double, ms, SUM, io_time, 15, "time writing shared blocks (track_io_timing)")
COUNTER(39, local_blk_read_time, double, ms, SUM, io_time, 17, "time reading local blocks (track_io_timing)")
COUNTER(40, local_blk_write_time, double, ms, SUM, io_time, 17, "time writing local blocks (track_io_timing)")
COUNTER(41, temp_blk_read_time, double, ms, SUM, io_time, 15, "time reading temporary blocks (track_io_timing)")
COUNTER(42, temp_blk_write_time, double, ms, SUM, io_time, 15, "time writing temporary blocks (track_io_timing)")
COUNTER(43, wal_records, int64, one, SUM, wal, 15, "WAL records generated")
COUNTER(44, wal_fpi, int64, one, SUM, wal, 15, "WAL full page images generated")
COUNTER(45, wal_bytes, int64, bytes, SUM, wal, 15, "WAL bytes generated")
COUNTER(46, wal_buffers_full, int64, one, SUM, wal_full, 18, "times the WAL buffers became full")
COUNTER(47, jit_functions, int64, one, SUM, jit, 15, "functions compiled")
COUNTER(48, jit_generation_time, double, ms, SUM, jit, 15, "time generating code")
COUNTER(49, jit_inlining_count, int64, one, SUM, jit, 15, "times functions were inlined")
COUNTER(50, jit_inlining_time, double, ms, SUM, jit, 15, "time inlining")
COUNTER(51, jit_optimization_count, int64, one, SUM, jit, 15, "times the code was optimized")
COUNTER(52, jit_optimization_time, double, ms, SUM, jit, 15, "time optimizing")
COUNTER(53, jit_emission_count, int64, one, SUM, jit, 15, "times code was emitted")
COUNTER(54, jit_emission_time, double, ms, SUM, jit, 15, "time emitting code")
COUNTER(55, jit_deform_count, int64, one, SUM, jit, 17, "tuple deform functions compiled")
COUNTER(56, jit_deform_time, double, ms, SUM, jit, 17, "time compiling tuple deform functions")
COUNTER(57, parallel_workers_to_launch, int64, one, SUM, workers, 18, "parallel workers planned")
COUNTER(58, parallel_workers_launched, int64, one, SUM, workers, 18, "parallel workers launched")
COUNTER(59, generic_plan_calls, int64, one, SUM, origin, 19, "executions of a generic plan")
COUNTER(60, custom_plan_calls, int64, one, SUM, origin, 19, "executions of a custom plan")
COUNTER(61, user_time, double, ms, SUM, cpu, 15, "CPU time in user mode")
COUNTER(62, system_time, double, ms, SUM, cpu, 15, "CPU time in system mode")
COUNTER(63, run_queue_time, double, ms, SUM, cpu, 15, "time ready to run but waiting for a CPU")
COUNTER(64, read_bytes, int64, bytes, SUM, cpu, 15, "bytes read from storage by the process")
COUNTER(65, written_bytes, int64, bytes, SUM, cpu, 15, "bytes written to storage by the process")
COUNTER(66, minor_faults, int64, one, SUM, cpu, 15, "page faults served without I/O")
COUNTER(67, major_faults, int64, one, SUM, faults, 15, "page faults that needed I/O")
COUNTER(68, voluntary_switches, int64, one, SUM, cpu, 15, "voluntary context switches")
COUNTER(69, involuntary_switches, int64, one, SUM, cpu, 15, "involuntary context switches")
COUNTER(70, n_sampled, int64, one, SUM, cpu, 15, "executions whose CPU and I/O were measured: each of 4.1 ms or more, and a sample of the shorter ones; a sample stands for several executions in the counters above")
COUNTER(71, errors, int64, one, SUM, error, 15, "executions that ended with an error")
COUNTER(72, cancellations, int64, one, SUM, error, 15, "executions that were canceled")
COUNTER(73, histogram, int64, one, HISTOGRAM, histogram, 15, "executions by duration: bucket b has times of 2^b to 2^(b+1) us; the first begins at 0, the last has no end; ids 73 to 96")
COUNTER(97, histogram_long, int64, one, LONG, long, 15, "executions of 8.4 s and more by duration: bucket b has times of 2^(23+b) to 2^(24+b) us, the last has no end. All are in the last bucket of histogram; ids 97 to 108")
COUNTER(109, sampled_exec_time, double, ms, SUM, cpu, 15, "execution time of the executions in n_sampled: CPU and I/O of the rest of total_exec_time are estimated")
COUNTER(110, failed_exec_time, double, ms, SUM, failed, 15, "time spent in executions that failed or were canceled, which total_exec_time does not have")
COUNTER(111, failed_cpu_time, double, ms, SUM, failed, 15, "CPU time of failed executions that were measured")
COUNTER(112, failed_shared_blks_hit, int64, blocks, SUM, failed, 15, "shared blocks that failed executions found in the cache")
COUNTER(113, failed_shared_blks_read, int64, blocks, SUM, failed, 15, "shared blocks that failed executions read")
COUNTER(114, failed_shared_blks_dirtied, int64, blocks, SUM, failed, 15, "shared blocks that failed executions dirtied")
COUNTER(115, failed_shared_blks_written, int64, blocks, SUM, failed, 15, "shared blocks that failed executions wrote")
COUNTER(116, failed_local_blks_hit, int64, blocks, SUM, failed, 15, "local blocks that failed executions found in the cache")
COUNTER(117, failed_local_blks_read, int64, blocks, SUM, failed, 15, "local blocks that failed executions read")
COUNTER(118, failed_local_blks_dirtied, int64, blocks, SUM, failed, 15, "local blocks that failed executions dirtied")
COUNTER(119, failed_local_blks_written, int64, blocks, SUM, failed, 15, "local blocks that failed executions wrote")
COUNTER(120, failed_temp_blks_read, int64, blocks, SUM, failed, 15, "temporary blocks that failed executions read")
COUNTER(121, failed_temp_blks_written, int64, blocks, SUM, failed, 15, "temporary blocks that failed executions wrote")
COUNTER(122, failed_wal_records, int64, one, SUM, failed, 15, "WAL records that failed executions generated")
COUNTER(123, failed_wal_bytes, int64, bytes, SUM, failed, 15, "WAL bytes that failed executions generated")
