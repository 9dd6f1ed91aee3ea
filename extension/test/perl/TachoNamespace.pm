# A server in namespaces of its own: /proc is an empty directory there, and
# "small" beside its data directory is a file system of a few megabytes.
package TachoNamespace;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(namespaces_missing start_inside);

# Root of the outer name space mounts; the command runs as another user, since
# a server refuses root. That step needs /proc, so /proc is hidden after it.
my $enter = q{unshare --user --map-root-user --mount sh -c '
	mount -t tmpfs -o size=$1 tmpfs "$2" && mkfifo "$2/go" || exit
	fifo=$2/go
	shift 2
	unshare --user --map-user=1000 sh -c "read go <\"\$0\" && exec \"\$@\"" "$fifo" "$@" &
	exec 3>"$fifo"
	mount -t tmpfs tmpfs /proc && echo go >&3 && wait $!' sh};

# Why it cannot be done here; empty if it can.
sub namespaces_missing
{
	my ($node) = @_;
	my $output = qx{timeout 20 $enter 1m '@{[small($node)]}' id -u 2>&1};

	return $output eq "1000\n" ? '' : "no user namespaces here: $output";
}

# Starts the server with a small file system of this size.
sub start_inside
{
	my ($node, $size) = @_;
	my $bin = $node->basedir . '/bin';
	my $small = small($node);

	mkdir $bin;
	open my $script, '>', "$bin/pg_ctl" or die "open: $!";
	chomp(my $real = qx{"$ENV{PG_CONFIG}" --bindir});
	print $script qq{#!/bin/sh\nexec $enter $size '$small' '$real/pg_ctl' "\$@"\n};
	close $script;
	chmod 0755, "$bin/pg_ctl" or die "chmod: $!";
	local $ENV{PATH} = "$bin:$ENV{PATH}";
	return $node->start;
}

sub small
{
	my ($node) = @_;
	my $directory = $node->basedir . '/small';

	mkdir $directory;
	return $directory;
}

1;
