#!/usr/bin/env perl
# usage: dashboards/make.pl [--check]
#
# Writes the dashboards beside it: tacho-prometheus.json asks a Prometheus that
# scrapes tacho web, tacho-postgresql.json asks the reader functions of a server.
# With --check nothing is written: it ends with 1 when they are not what this
# script makes. UIDs stay as they are, because addresses have them.
use strict;
use warnings;
use File::Basename qw(dirname);
use JSON::PP;

my $window = 'since=${__from:date:iso}&until=${__to:date:iso}';
my $page = "\${page}/?server=\${server:percentencode}&$window";
my $own = '/d/tacho-postgresql?${__url_time_range}&${datasource:queryparam}&${page:queryparam}&${server:queryparam}';
# what the panels of PostgreSQL are filtered by, and what clicks fill in
my @filters = qw(query_id wait_event_type wait_event application username database pid);
my $times = q{since => $__timeFrom()::timestamptz, until => $__timeTo()::timestamptz};
my $filter = join ', ', map { "$_ => nullif(\${$_:sqlstring}, '')" } @filters;
my $bucket = q{bucket => greatest(interval '$__interval', interval '10 seconds')};

sub link_to
{
	my ($title, $url, $new) = @_;
	return { title => $title, url => $url, targetBlank => $new ? JSON::PP::true : JSON::PP::false };
}

# A panel. Options: w, h, unit, stacked, links, type, overrides, about.
sub panel
{
	my ($title, $targets, %opt) = @_;
	my $custom = $opt{stacked}
	  ? { fillOpacity => 70, lineWidth => 0, stacking => { mode => 'normal', group => 'A' } }
	  : { fillOpacity => 0 };
	my $type = $opt{type} // 'timeseries';

	return {
		title => $title,
		type => $type,
		description => $opt{about} // '',
		targets => $targets,
		interval => '10s',
		size => [ $opt{w} // 12, $opt{h} // 8 ],
		fieldConfig => {
			defaults => {
				unit => $opt{unit} // 'short',
				links => $opt{links} // [],
				($type eq 'timeseries' ? (min => 0, custom => $custom) : ())
			},
			overrides => $opt{overrides} // []
		},
		options => $type eq 'timeseries'
		? { legend => { showLegend => JSON::PP::true, placement => 'right', displayMode => 'list' }, tooltip => { mode => 'multi' } }
		: {}
	};
}

# A field of one name that is drawn as a line, not stacked.
sub line
{
	my ($name) = @_;
	return {
		matcher => { id => 'byName', options => $name },
		properties => [
			{ id => 'custom.stacking', value => { mode => 'none' } },
			{ id => 'custom.fillOpacity', value => 0 },
			{ id => 'custom.lineWidth', value => 2 }
		]
	};
}

# A column of a table that leads somewhere.
sub leads
{
	my ($name, @links) = @_;
	return {
		matcher => { id => 'byName', options => $name },
		properties => [ { id => 'links', value => \@links } ]
	};
}

sub expressions
{
	my @pairs = @_;
	my ($letter, @targets) = ('A');

	while (my ($expression, $legend) = splice @pairs, 0, 2)
	{
		push @targets, { refId => $letter++, expr => $expression, legendFormat => $legend };
	}
	return \@targets;
}

sub series { return [ { refId => 'A', rawSql => $_[0], format => 'time_series', rawQuery => JSON::PP::true, editorMode => 'code' } ] }
sub table { return [ { refId => 'A', rawSql => $_[0], format => 'table', rawQuery => JSON::PP::true, editorMode => 'code' } ] }

sub variable
{
	my ($name, $type, %more) = @_;
	return { name => $name, type => $type, %more };
}

sub text_variable
{
	my ($name, $value, $label) = @_;
	return variable($name, 'textbox', label => $label // $name, query => $value,
		current => { text => $value, value => $value });
}

# A dashboard: panels are put beside each other as they fit into 24 columns.
sub dashboard
{
	my ($uid, $title, $source, $variables, $annotations, @panels) = @_;
	my ($x, $y, $high, $id) = (0, 0, 0, 0);

	for my $panel (@panels)
	{
		my ($w, $h) = @{ delete $panel->{size} };

		($x, $y, $high) = (0, $y + $high, 0) if $x + $w > 24;
		$panel->{gridPos} = { x => $x, y => $y, w => $w, h => $h };
		$panel->{id} = ++$id;
		$panel->{datasource} = { type => $source, uid => '${datasource}' };
		$x += $w;
		$high = $h if $h > $high;
	}
	return {
		uid => $uid, title => $title, tags => ['tacho'], schemaVersion => 39, version => 1,
		editable => JSON::PP::true, timezone => 'utc', refresh => '10s', graphTooltip => 1,
		time => { from => 'now-1h', to => 'now' },
		links => [ { type => 'link', %{ link_to('This window on the page', $page, 1) } } ],
		annotations => { list => $annotations },
		templating => {
			list => [
				variable('datasource', 'datasource', label => 'source', query => $source),
				@$variables, text_variable('page', 'http://127.0.0.1:8432', 'address of tacho web')
			]
		},
		panels => \@panels
	};
}

my $of = '{server="$server"}';
my $observed = "rate(tacho_observed_seconds_total$of\[\$__rate_interval])";

# A rate of a counter of the server.
sub rate { return "rate(tacho_$_[0]$of\[\$__rate_interval])" }

my $of_class = link_to('This class on the page', "$page&wait_event_type=\${__field.labels.wait_event_type:percentencode}", 1);

my $prometheus = dashboard(
	'tacho-prometheus', 'tacho: servers by Prometheus', 'prometheus',
	[ variable('server', 'query', query => { query => 'label_values(tacho_readable, server)', refId => 'A' },
		datasource => { type => 'prometheus', uid => '${datasource}' }, refresh => 2, sort => 1) ],
	[],
	panel('Average active sessions by class of wait',
		expressions("sum by (wait_event_type) (rate(tacho_session_seconds_total$of\[\$__rate_interval])) / on () group_left () $observed", '{{wait_event_type}}',
			"tacho_vcpus$of", 'CPUs'),
		w => 24, h => 10, stacked => 1, links => [$of_class], overrides => [ line('CPUs') ],
		about => 'Time of sessions by time observed: exact over gaps.'),
	panel('by state', expressions("sum by (state) (rate(tacho_session_seconds_total$of\[\$__rate_interval])) / on () group_left () $observed", '{{state}}'), stacked => 1),
	panel('Transactions a second', expressions(
			"sum by (database) (" . rate('database_xact_commit_total') . ")", '{{database}} commit',
			"sum by (database) (" . rate('database_xact_rollback_total') . ")", '{{database}} rollback')),
	panel('CPU of the host', expressions(map { (rate("server_cpu_${_}_seconds_total"), $_) } qw(user system iowait steal)),
		stacked => 1, about => 'CPUs in use.'),
	panel('Pressure', expressions(map { (rate("server_pressure_${_}_seconds_total"), $_) } qw(cpu_some memory_some io_some)),
		unit => 'percentunit', about => 'Share of time in which a task waited.'),
	panel('Write-ahead log', expressions(rate('server_wal_bytes_total'), 'log'), unit => 'Bps'),
	panel('Checkpoints', expressions(rate('server_checkpoint_write_time_seconds_total'), 'writing',
			rate('server_checkpoint_sync_time_seconds_total'), 'synchronising'), unit => 'percentunit'),
	panel('Log kept for slots', expressions("tacho_slot_retained_bytes$of", '{{slot}}'), unit => 'bytes'),
	panel('Lag of replicas', expressions("tacho_replica_replay_lag_bytes$of", '{{replica}}'), unit => 'bytes'),
	panel('Age of the oldest transaction id', expressions("tacho_server_oldest_xid_age$of", 'age')),
	panel('Blocks read a second', expressions(
			"sum by (database) (" . rate('database_blks_read_total') . ")", '{{database}}')),
	panel('Age of the last tick', expressions("time() - tacho_last_tick_timestamp_seconds$of", 'age'), unit => 's', w => 8),
	panel('Time observed', expressions($observed, 'observed'), unit => 'percentunit', w => 8),
	panel('Cost of a tick', expressions("tacho_last_tick_cost_seconds$of", 'CPU time'), unit => 's', w => 8),
	panel('Size of the history', expressions("tacho_history_bytes$of", 'history', "tacho_damaged_bytes$of", 'damaged'), unit => 'bytes', w => 8),
	panel('Oldest history', expressions("time() - tacho_first_tick_timestamp_seconds$of", 'age'), unit => 's', w => 8),
	panel('Ticks missed or failed a second', expressions(rate('ticks_missed_total'), 'missed', rate('ticks_failed_total'), 'failed'), w => 8));

# Rows of the largest keys of a dimension, which lead to the same with this key.
sub largest
{
	my ($title, $dimension, %opt) = @_;
	my $text = $opt{text} ? ', query_text' : '';
	my $name = $dimension;

	return panel($title,
		table("select key as $name, avg_aas, pct, peak_sessions$text\nfrom tacho.top('$dimension', n => 10, $times,\n  $filter)"),
		type => 'table', w => $opt{w} // 12,
		overrides => [ leads($name,
				link_to('Only this', "$own&var-$name=\${__value.raw:percentencode}"),
				link_to('On the page', "$page&$name=\${__value.raw:percentencode}", 1)) ]);
}

sub measured
{
	my ($title, $metrics, %opt) = @_;
	my $list = join ',', @$metrics;

	return panel($title, series(
			"select period_start as time, metric || coalesce(' ' || object, '') as metric, avg as value\n"
			  . "from tacho.server_history(metric => '$list', $bucket,\n  $times)\norder by 1"), %opt);
}

my $postgresql = dashboard(
	'tacho-postgresql', 'tacho: down to the session', 'grafana-postgresql-datasource',
	[ text_variable('server', '', 'server on the page'), map { text_variable($_, '') } @filters ],
	[ {
			name => 'Events', enable => JSON::PP::true, iconColor => 'orange',
			datasource => { type => 'grafana-postgresql-datasource', uid => '${datasource}' },
			target => table("select marker_time as time, kind || coalesce(': ' || detail, '') as text, kind as tags\nfrom tacho.markers($times)")->[0]
		} ],
	panel('Average active sessions by class of wait',
		series("select bucket_start as time, coalesce(key, '(null)') as metric, avg_aas as value\n"
			  . "from tacho.timeline($bucket, by => 'wait_event_type', $times,\n  $filter)\norder by 1"),
		w => 24, h => 10, stacked => 1,
		links => [ link_to('Only this class', "$own&var-wait_event_type=\${__field.name:percentencode}"),
			link_to('This class on the page', "$page&wait_event_type=\${__field.name:percentencode}", 1) ]),
	largest('Queries', 'query_id', text => 1, w => 24),
	largest('Waits', 'wait_event'),
	largest('Applications', 'application'),
	largest('Users', 'username'),
	largest('Databases', 'database'),
	panel('What statements cost',
		table("select s.*\n"
			  . "from tacho.statements_history(n => 10, $times,\n  query_id => nullif(\${query_id:sqlstring}, '')) s"),
		type => 'table', w => 24),
	panel('Heads of queues for locks',
		table("select pid, application, username, state, blocked_seconds, waiters, first_seen, last_seen, query_text\n"
			  . "from tacho.blocking(n => 20, $times)"),
		type => 'table', w => 24, overrides => [ leads('pid', link_to('Only this process', "$own&var-pid=\${__value.raw}"),
				link_to('On the page', "$page&tab=sessions&pid=\${__value.raw}", 1)) ]),
	panel('Sessions: what each did from when to when',
		table("select pid, application, username, database, span_start, span_end, kind, seconds, state,\n"
			  . "  wait_event_type, wait_event, blocked_by, query_id, query_text\n"
			  . "from tacho.sessions(n => 10, $times,\n  $filter)"),
		type => 'table', w => 24, h => 12,
		overrides => [ leads('pid', link_to('Only this process', "$own&var-pid=\${__value.raw}"),
				link_to('On the page', "$page&tab=sessions&pid=\${__value.raw}", 1)) ]),
	panel('Samples',
		table("select sample_time, pid, application, username, state, wait_event_type, wait_event, blocked_by, query_id, query_text\n"
			  . "from tacho.samples(n => 200, $times,\n  $filter)"),
		type => 'table', w => 24, h => 12),
	measured('CPU time of the host, ms a second', [qw(cpu_user cpu_system cpu_iowait cpu_steal)], stacked => 1),
	measured('Write-ahead log', ['wal_bytes'], unit => 'Bps'),
	measured('Transactions a second', [qw(xact_commit xact_rollback)]),
	measured('Log kept for slots', ['slot_retained'], unit => 'bytes'));

my $json = JSON::PP->new->utf8->canonical->pretty->indent_length(2);
my $status = 0;
for my $made ($prometheus, $postgresql)
{
	my $file = dirname(__FILE__) . "/$made->{uid}.json";
	my $text = $json->encode($made);

	if (@ARGV && $ARGV[0] eq '--check')
	{
		local $/ = undef;
		open my $in, '<', $file or die "$file: $!\n";
		next if <$in> eq $text;
		print {*STDERR} "$file is not what make.pl makes\n";
		$status = 1;
		next;
	}
	open my $out, '>', $file or die "$file: $!\n";
	print $out $text;
	close $out or die "$file: $!\n";
}
exit $status;
