package target

import "context"

// Kinds of Others.
const (
	OtherVM     = "VM"
	OtherVolume = "volume"
	OtherNode   = "node"
)

// Other is something on a target that the run which asks did not make or change.
type Other struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`              // as the target has it: for people to read
	NodeID string `json:"node_id,omitempty"` // "" where nodes share it
	Why    string `json:"why"`               // why it is skipped: "it belongs to run r1"
}

// Reasons to skip an object.
const (
	WhyUnmarked = "Bragg did not make it"
	WhyAnother  = "it belongs to another run"
)

// OtherLister lists the VMs on the target's nodes, running or not, and the volumes where it keeps those of VMs, that do not carry
// the tag. It changes nothing. Beside an error it returns what it saw.
type OtherLister interface {
	Others(ctx context.Context, tag Tag) ([]Other, error)
}
