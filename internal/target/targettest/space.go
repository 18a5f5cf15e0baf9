package targettest

import "github.com/braggdev/bragg/internal/target"

// space: every node reports its storage, and a node that does not exist returns an error.
func space(s *suite) {
	meter, ok := s.target.(target.SpaceMeter)
	if !ok {
		return
	}
	inventory, err := s.target.Inventory(s.Context())
	s.must(err)
	for _, n := range inventory.Nodes {
		space, err := meter.NodeSpace(s.Context(), n.ID)
		s.must(err)
		if space.Storage == "" || space.Place == "" || space.FreeBytes < 0 || space.TotalBytes <= 0 || space.FreeBytes > space.TotalBytes {
			s.Errorf("node %q: %+v", n.ID, space)
		}
		if space.TotalBytes > inventory.TotalBytes {
			s.Errorf("node %q has %d bytes, and all nodes together have %d", n.ID, space.TotalBytes, inventory.TotalBytes)
		}
	}
	for _, id := range []string{"", "no such node", "--all"} {
		if space, err := meter.NodeSpace(s.Context(), id); err == nil {
			s.Errorf("node %q has %+v", id, space)
		}
	}
}
