package target

import "context"

// Kinds of Others.
const (
	OtherVM     = "VM"
	OtherVolume = "volume"
	OtherNode   = "node"
)

// Other is an object on a target that the current run did not make or change.
type Other struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`              // its name on the target, for people to read
	NodeID string `json:"node_id,omitempty"` // "" if nodes share it
	Why    string `json:"why"`               // why it is skipped: "it belongs to run r1"
}

// Reasons to skip an object.
const (
	WhyUnmarked = "Bragg did not make it"
	WhyAnother  = "it belongs to another run"
)

// OtherLister lists the VMs on the target's nodes, running or not, and the volumes in its VM storage, that do not carry the
// tag. It changes nothing. With an error it returns the objects it could read.
type OtherLister interface {
	Others(ctx context.Context, tag Tag) ([]Other, error)
}

// WhySkipped says why an object with a mark is skipped by the owner of another; "" for its own, and WhyUnmarked for none.
func WhySkipped(mark, own string) string {
	switch mark {
	case own:
		return ""
	case "":
		return WhyUnmarked
	}
	return WhyAnother
}
