package step

import (
	"context"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

var checkVSphereDatastoreVisible = verb.Kind{
	Name:    "check.VSphereDatastoreVisible",
	Summary: "Check that a node sees a datastore, as vSphere says.",
	Doc:     "Only on vSphere. The node is given by its index.",
	Example: exampleHead + `workloads: []
results: []
setup:
  - check.VSphereDatastoreVisible:
      datastore_name: default
      node_index: 0
run:
  - test.Wait:
      duration_secs: 1
`,
	Needs: []target.Capability{target.CapDatastore},
	New:   func() verb.Step { return new(vSphereDatastoreVisible) },
}

type vSphereDatastoreVisible struct {
	Datastore string `arg:"datastore_name,required" doc:"Name of the datastore."`
	Node      int    `arg:"node_index,required" doc:"Index of the node."`
	Annotate  bool   `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

func (s *vSphereDatastoreVisible) Check(v *verb.View, problems *verb.Problems) {
	checkNodeIndex("node_index", s.Node, v, problems)
	checkProvider(v, problems, "check.VSphereDatastoreVisible", "vsphere")
}

func (s *vSphereDatastoreVisible) Run(ctx context.Context, env *verb.Env) error {
	return datastoreVisible(ctx, env, s.Node, s.Datastore, s.Annotate)
}
