// Package storage holds the steps that change the storage of the target itself, and restore it.
package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/step/example"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// ContainerSetProperties is container.SetProperties.
var ContainerSetProperties = verb.Kind{
	Name:    "container.SetProperties",
	Summary: "Change the replication factor, compression or erasure coding of the storage container.",
	Doc: "The storage container is that of the target's VM disks, and its settings concern all its users, so the target file has to allow " +
		"the step with allow: {container_settings: true}. Arguments that are not given stay as they are. The settings before the first " +
		"such step are restored at the end of the run. The platform converts existing data in the background, which the step does not await.",
	Example: example.Deployed + `  - container.SetProperties:
      compression: True
      compression_delay_secs: 0
` + example.Wait,
	Needs:       []target.Capability{target.CapContainer},
	SetsStorage: true,
	New:         func() verb.Step { return new(setProperties) },
}

type setProperties struct {
	Replication   *int           `arg:"replication_factor" doc:"Copies of each byte."`
	Compression   *bool          `arg:"compression" doc:"Whether data is compressed."`
	Delay         *time.Duration `arg:"compression_delay_secs" unit:"s" doc:"How long after the write; 0: inline."`
	ErasureCoding *bool          `arg:"erasure_coding" doc:"Whether cold data is erasure-coded."`
	Annotate      bool           `arg:"annotate" default:"true" doc:"Mark the moment on charts."`
}

const replicationMax = 3 // of Nutanix

func (s *setProperties) Check(_ *verb.View, problems *verb.Problems) {
	if len(s.words()) == 0 {
		problems.Errorf("", "no-effect", "container.SetProperties changes nothing without replication_factor, compression, compression_delay_secs or erasure_coding")
	}
	if s.Replication != nil && (*s.Replication < 1 || *s.Replication > replicationMax) {
		problems.Errorf("replication_factor", "bad-value", "replication_factor: %d, want 1 to %d", *s.Replication, replicationMax)
	}
	if s.Delay != nil && *s.Delay < 0 {
		problems.Errorf("compression_delay_secs", "bad-value", "compression_delay_secs: want 0 or more seconds")
	}
}

// words say what is changed, for marks on charts.
func (s *setProperties) words() []string {
	var words []string
	if s.Replication != nil {
		words = append(words, fmt.Sprintf("replication factor %d", *s.Replication))
	}
	state := map[bool]string{true: "on", false: "off"}
	if s.Compression != nil {
		words = append(words, "compression "+state[*s.Compression])
	}
	if s.Delay != nil {
		words = append(words, fmt.Sprintf("compression delay %v", *s.Delay))
	}
	if s.ErasureCoding != nil {
		words = append(words, "erasure coding "+state[*s.ErasureCoding])
	}
	return words
}

func (s *setProperties) Effect(*verb.View) verb.Effect {
	return verb.Effect{Subject: "storage container"}
}

func (s *setProperties) Run(ctx context.Context, env *verb.Env) error {
	setter, ok := env.Target.(target.ContainerSetter)
	if !ok {
		return errors.New("change the storage container: the target cannot")
	}
	change := target.ContainerSettings{Compression: s.Compression, CompressionDelay: s.Delay, ErasureCoding: s.ErasureCoding}
	if s.Replication != nil {
		change.Replication = *s.Replication
	}
	if err := setter.SetContainer(ctx, env.Tag, change); err != nil {
		return fmt.Errorf("change the storage container: %w", err)
	}
	env.Mark(s.Annotate, "storage container: %s", strings.Join(s.words(), ", "))
	return nil
}

// Undo restores the settings. Of several such steps the first that is undone restores all.
func (s *setProperties) Undo(ctx context.Context, env *verb.Env) error {
	setter, ok := env.Target.(target.ContainerSetter)
	if !ok {
		return nil
	}
	if err := setter.RestoreContainer(ctx, env.Tag); err != nil {
		return fmt.Errorf("restore the storage container: %w", err)
	}
	return nil
}
