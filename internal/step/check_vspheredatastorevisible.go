package step

import (
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkVSphereDatastoreVisible = verb.Kind{
	Name:    "check.VSphereDatastoreVisible",
	Summary: "Check that a node sees a datastore, as vSphere says.",
	Doc:     "Only on vSphere. The node is given by its index.",
	Example: exampleIdle + `setup:
  - check.VSphereDatastoreVisible:
      datastore_name: default
      node_index: 0
` + exampleWait,
	Needs: []target.Capability{target.CapDatastore},
	New:   func() verb.Step { return &datastoreCheck{step: "check.VSphereDatastoreVisible", provider: "vsphere"} },
}
