package check

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var PrismDatastoreVisible = verb.Kind{
	Name:    "check.PrismDatastoreVisible",
	Summary: "Check that a node sees a datastore, as Prism says.",
	Doc:     "Only on Nutanix. The node is given by its index.",
	Example: example.Idle + `setup:
  - check.PrismDatastoreVisible:
      datastore_name: default
      node_index: 0
` + example.Wait,
	Needs: []target.Capability{target.CapDatastore},
	New:   func() verb.Step { return &datastoreCheck{step: "check.PrismDatastoreVisible", provider: "nutanix"} },
}
