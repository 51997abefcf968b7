"""What several faults share: roles, membership, links, groups, transactions and topics."""
