package check

import (
	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var VSphereDatastoreVisible = verb.Kind{
	Name:    "check.VSphereDatastoreVisible",
	Summary: "Check that a node sees a datastore, as vSphere says.",
	Doc:     "Only on vSphere. The node is given by its index.",
	Example: example.Idle + `setup:
  - check.VSphereDatastoreVisible:
      datastore_name: default
      node_index: 0
` + example.Wait,
	Needs: []target.Capability{target.CapDatastore},
	New:   func() verb.Step { return &datastoreCheck{step: "check.VSphereDatastoreVisible", provider: "vsphere"} },
}
