package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
)

// Config is a target file: what is tested, and what may be done to it. docs/formats/target.md describes the format.
type Config struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	// NodeCount is for providers that make their own nodes; Nodes is for all others, in the order that slices count.
	NodeCount int          `json:"node_count,omitempty"`
	Nodes     []NodeConfig `json:"nodes,omitempty"`
	// Endpoint is where the platform is managed: an address or URL.
	Endpoint  string            `json:"endpoint,omitempty"`
	Templates map[string]string `json:"templates,omitempty"` // name in scenarios → image of the platform
	Pool      string            `json:"pool,omitempty"`      // storage for VM disks
	// Replication is how often the pool keeps each byte, where its free space is that before replication; 0 counts as 1.
	Replication int                   `json:"replication_factor,omitempty"`
	Network     string                `json:"network,omitempty"`
	Addresses   Addresses             `json:"addresses"`
	Credentials map[string]Credential `json:"credentials,omitempty"`
	Facts       []Fact                `json:"facts,omitempty"` // in the order of the file
	Health      *Health               `json:"health,omitempty"`
	Allow       Allow                 `json:"allow"`
	Options     map[string]string     `json:"options,omitempty"` // of the provider
	File        string                `json:"-"`                 // where it was read; empty when built in
}

// NodeConfig is one node of a target file.
type NodeConfig struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
	// Serial and UUID are what the machine says of itself (DMI), as far as the owner wrote it down.
	Serial string `json:"serial,omitempty"`
	UUID   string `json:"uuid,omitempty"`
	// ExporterPort is where a Prometheus exporter answers at Address; 0: there is none.
	ExporterPort int `json:"exporter_port,omitempty"`
	// Endpoint is where this node is managed, for platforms that manage each by itself.
	Endpoint string `json:"endpoint,omitempty"`
	BMC      *BMC   `json:"bmc,omitempty"`
}

// Addresses says how VMs get their addresses: by DHCP, or from a range that the owner reserved.
type Addresses struct {
	DHCP    bool   `json:"dhcp,omitempty"`
	First   string `json:"first,omitempty"`
	Last    string `json:"last,omitempty"`
	Prefix  int    `json:"prefix,omitempty"`
	Gateway string `json:"gateway,omitempty"`
}

// Allow is what the owner lets runs do beyond their own VMs.
type Allow struct {
	NodePower bool `json:"node_power"`
	// Overrides names checks before a power cut that are not made, see Overrides. The report says so.
	Overrides []string `json:"overrides,omitempty"`
}

// Health is the owner's own check of whether the target has its redundancy: a program, or a query of Prometheus. It is made
// before each power cut.
type Health struct {
	Command    []string `json:"command,omitempty"`    // succeeds when the target has recovered
	Prometheus string   `json:"prometheus,omitempty"` // address of the server
	Query      string   `json:"query,omitempty"`      // gives at least one series when the target has recovered
}

// Credential is a user and where the secret is kept. The secret itself is never in a target file.
type Credential struct {
	User   string `json:"user,omitempty"`
	Secret Secret `json:"secret"`
}

// Secret refers to a secret; exactly one field is set.
type Secret struct {
	Env     string   `json:"env,omitempty"`
	File    string   `json:"file,omitempty"`
	Command []string `json:"command,omitempty"`
}

const (
	secretBytesMax  = 64 << 10
	secretTimeLimit = 30 * time.Second
)

// Read fetches the secret, without its last line feed.
func (s Secret) Read(ctx context.Context) (string, error) {
	var text []byte
	switch {
	case s.Env != "":
		value, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", fmt.Errorf("read secret: environment variable %q is not set", s.Env)
		}
		text = []byte(value)
	case s.File != "":
		info, err := os.Stat(s.File)
		if err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
		if !info.Mode().IsRegular() || info.Size() > secretBytesMax {
			return "", fmt.Errorf("read secret: %q is not a small regular file", s.File)
		}
		if text, err = os.ReadFile(s.File); err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
	case len(s.Command) > 0:
		ctx, cancel := context.WithTimeout(ctx, secretTimeLimit)
		defer cancel()
		var err error
		if text, err = exec.CommandContext(ctx, s.Command[0], s.Command[1:]...).Output(); err != nil {
			return "", fmt.Errorf("read secret: run %q: %w", s.Command[0], err)
		}
	default:
		return "", errors.New("read secret: no reference")
	}
	if len(text) > secretBytesMax {
		return "", fmt.Errorf("read secret: more than %d bytes", secretBytesMax)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

const (
	virtualNodesDefault = 4
	virtualNodesMax     = 256
)

// MakeNodes returns the nodes of a provider that makes its own, as many as the target file says.
func (c *Config) MakeNodes(provider string) ([]Node, error) {
	n := cmp.Or(c.NodeCount, virtualNodesDefault)
	if n < 0 || n > virtualNodesMax {
		return nil, &diag.Error{
			Code: "target-node-count", Exit: diag.ExitUsage,
			Message: fmt.Sprintf("open %s target: %d nodes, want 1 to %d", provider, n, virtualNodesMax),
		}
	}
	return VirtualNodes(n), nil
}

// VirtualNodes returns n nodes of a provider that makes its own.
func VirtualNodes(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{ID: fmt.Sprintf("node-%d", i+1), Name: fmt.Sprintf("node-%d", i+1), HasBMC: true}
	}
	return nodes
}
