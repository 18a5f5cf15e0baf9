package nutanix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
)

// containers changes settings of the storage container. What they were is kept on the controller, where a cleanup finds it: Prism has no
// place for it that other users do not see.
type containers struct {
	cluster *cluster
	dir     string
	mu      sync.Mutex
}

// kept is the settings of a container before the run.
type kept struct {
	Container string                   `json:"container"` // id
	Settings  target.ContainerSettings `json:"settings"`
}

const keptBytesMax = 1 << 20

func (c *containers) path(tag target.Tag) string {
	return filepath.Join(c.dir, tag.Mark()+".container.json")
}

// SetContainer changes settings of the storage container of VM disks.
func (c *containers) SetContainer(ctx context.Context, tag target.Tag, s target.ContainerSettings) error {
	if err := tag.Check(); err != nil {
		return err
	}
	if !c.cluster.config.Allow.ContainerSettings {
		return target.ContainerForbidden()
	}
	if _, err := c.cluster.known(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.cluster.container.Key()
	now, err := c.cluster.ahv.Container(ctx, id)
	if err != nil {
		return err
	}
	if err := c.keep(tag, kept{id, settingsOf(now)}); err != nil {
		return fmt.Errorf("keep the settings of storage container %q: %w", now.Name, err)
	}
	return c.set(ctx, now, s)
}

// keep writes the settings down, unless those before an earlier change are there.
func (c *containers) keep(tag target.Tag, k kept) error {
	if c.dir == "" {
		return errors.New("this program has no folder for it")
	}
	if _, err := os.Stat(c.path(tag)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(c.path(tag), text, 0o600)
}

// RestoreContainer makes the settings as they were.
func (c *containers) RestoreContainer(ctx context.Context, tag target.Tag) error {
	if err := tag.Check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == "" {
		return nil
	}
	text, err := durable.ReadFile(c.path(tag), keptBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var before kept
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil {
		return fmt.Errorf("read the former settings of the storage container: %w", err)
	}
	if _, err := c.cluster.known(ctx); err != nil {
		return err
	}
	now, err := c.cluster.ahv.Container(ctx, before.Container)
	if err == nil {
		err = c.set(ctx, now, before.Settings)
	}
	if err != nil {
		return err
	}
	return os.Remove(c.path(tag))
}

// set makes the changes that are left to make.
func (c *containers) set(ctx context.Context, now ahv.Container, s target.ContainerSettings) error {
	fields := map[string]any{}
	if s.Replication > 0 && s.Replication != now.Replication {
		fields["replicationFactor"] = s.Replication
	}
	if s.Compression != nil && (now.Compression == nil || *s.Compression != *now.Compression) {
		fields["isCompressionEnabled"] = *s.Compression
	}
	if s.CompressionDelay != nil {
		if seconds := int(*s.CompressionDelay / time.Second); seconds != now.CompressionDelay {
			fields["compressionDelaySecs"] = seconds
		}
	}
	if s.ErasureCoding != nil && *s.ErasureCoding != erasureCoded(now) {
		fields["erasureCode"] = map[bool]string{true: "ON", false: "OFF"}[*s.ErasureCoding]
	}
	if len(fields) == 0 {
		return nil
	}
	if err := c.cluster.ahv.SetContainer(ctx, now.Key(), fields); err != nil {
		return fmt.Errorf("change settings of storage container %q: %w", now.Name, err)
	}
	return nil
}

func erasureCoded(c ahv.Container) bool { return strings.EqualFold(c.ErasureCode, "ON") }

func settingsOf(c ahv.Container) target.ContainerSettings {
	delay, coded := time.Duration(c.CompressionDelay)*time.Second, erasureCoded(c)
	return target.ContainerSettings{Replication: c.Replication, Compression: c.Compression, CompressionDelay: &delay, ErasureCoding: &coded}
}
