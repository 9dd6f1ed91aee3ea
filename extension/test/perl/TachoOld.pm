# SQL objects of an older version, to update them.
package TachoOld;
use strict;
use warnings;
use Exporter qw(import);
use File::Copy qw(copy);
use FindBin;
our @EXPORT_OK = qw(with_old_objects);

my @made;

# Adds the objects of version 0.1 to an installation whose --sharedir is given, until the
# end of the test. They were in the schema tacho.
sub with_old_objects
{
	my $target = shift . '/extension/tacho--0.1';
	my $data = "$FindBin::RealBin/../data/tacho--0.1.sql";
	push @made, "$target.sql", "$target.control";
	copy($data, "$target.sql") or die "$target.sql: $!";
	open(my $control, '>', "$target.control") or die "$target.control: $!";
	print $control "schema = tacho\n";
	close($control) or die "$target.control: $!";
	return;
}

END { unlink @made }

1;
