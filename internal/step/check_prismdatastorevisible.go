package step

import (
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkPrismDatastoreVisible = verb.Kind{
	Name:    "check.PrismDatastoreVisible",
	Summary: "Check that a node sees a datastore, as Prism says.",
	Doc:     "Only on Nutanix. The node is given by its index.",
	Example: exampleIdle + `setup:
  - check.PrismDatastoreVisible:
      datastore_name: default
      node_index: 0
` + exampleWait,
	Needs: []target.Capability{target.CapDatastore},
	New:   func() verb.Step { return &datastoreCheck{step: "check.PrismDatastoreVisible", provider: "nutanix"} },
}
