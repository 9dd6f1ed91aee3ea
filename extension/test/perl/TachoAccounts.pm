# Roles that share an account of the sampler: shares are kept by a hash of the role.
#
# my ($one, $two) = roles_of_an_account($node, \&name_account);
# my ($one, $two) = roles_of_an_account($node, sub { text_account($database_oid, @_) });
# create_roles_apart($node, \&name_account, 'flood', 'quiet');
package TachoAccounts;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT_OK = qw(create_roles_apart name_account roles_of_an_account text_account);

use constant ACCOUNTS => 1024;

sub product { return ($_[0] * $_[1]) & 0xffffffff; }

# murmurhash32() of PostgreSQL
sub murmur
{
	my ($h) = @_;

	$h = product($h ^ ($h >> 16), 0x85ebca6b);
	$h = product($h ^ ($h >> 13), 0xc2b2ae35);
	return $h ^ ($h >> 16);
}

# hash_combine() of PostgreSQL
sub combined
{
	my ($a, $b) = @_;
	return $a ^ (($b + 0x9e3779b9 + ($a << 6) + ($a >> 2)) & 0xffffffff);
}

# given_names.c
sub name_account { return murmur($_[0]) % ACCOUNTS; }

# query_text.c
sub text_account
{
	my ($database, $role) = @_;
	return combined(murmur($database), murmur($role)) % ACCOUNTS;
}

# The OID of a new role that may log in.
sub create_role
{
	my ($node, $name) = @_;
	return $node->safe_psql('postgres', "CREATE ROLE $name LOGIN; SELECT '$name'::regrole::oid");
}

# Creates roles that may log in, each with an account of its own. A role whose OID gives it
# another's account is created again.
sub create_roles_apart
{
	my ($node, $account, @names) = @_;
	my %taken;

	for my $name (@names)
	{
		my $own = $account->(create_role($node, $name));
		while ($taken{$own})
		{
			$node->safe_psql('postgres', "DROP ROLE $name");
			$own = $account->(create_role($node, $name));
		}
		$taken{$own} = 1;
	}
	return;
}

# Creates roles that may log in until two of them have one account; returns their names.
sub roles_of_an_account
{
	my ($node, $account) = @_;
	my %names;

	for my $number (1 .. ACCOUNTS + 1)
	{
		my $name = "sharer_$number";
		my $own = $account->(create_role($node, $name));
		return ($names{$own}, $name) if $names{$own};
		$names{$own} = $name;
	}
	die 'more roles than accounts';
}

1;
