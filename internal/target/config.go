package target

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/trust"
)

// Config is a target file: the target and the operations allowed on it. docs/formats/target.md describes the format.
type Config struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	// NodeCount is for providers that make their own nodes; Nodes is for all others, in the order of node slices.
	NodeCount int          `json:"node_count,omitempty"`
	Nodes     []NodeConfig `json:"nodes,omitempty"`
	// Endpoint is the address or URL of the platform's management.
	Endpoint string `json:"endpoint,omitempty"`
	// TLS of Endpoint: TLSVerified or TLSUnverified; "" is TLSVerified. Fingerprint is the SHA-256 of its only accepted
	// certificate, in lower-case hex; CAFile is the PEM of the authority that signed it.
	TLS         string            `json:"tls,omitempty"`
	Fingerprint string            `json:"fingerprint,omitempty"`
	CAFile      string            `json:"ca_file,omitempty"`
	Templates   map[string]string `json:"templates,omitempty"` // name in scenarios → image of the platform
	Pool        string            `json:"pool,omitempty"`      // storage for VM disks
	// Replication is the number of copies of each byte in the pool, if its free space is measured before replication; 0
	// counts as 1.
	Replication int                   `json:"replication_factor,omitempty"`
	Network     string                `json:"network,omitempty"`
	Addresses   Addresses             `json:"addresses"`
	Credentials map[string]Credential `json:"credentials,omitempty"`
	Facts       []Fact                `json:"facts,omitempty"` // in the order of the file
	// Simulates names capabilities that the platform itself only simulates, as in Inventory.
	Simulates map[Capability]string `json:"simulates,omitempty"`
	Health    *Health               `json:"health,omitempty"`
	Sources   []Source              `json:"sources,omitempty"` // of counters of the storage
	Allow     Allow                 `json:"allow"`
	Options   map[string]string     `json:"options,omitempty"` // of the provider
	File      string                `json:"-"`                 // path of the file; empty for a built-in target
	// Places are where the file names options and credentials, for messages: "options.cluster", "credentials.platform". Code, message
	// and hint are empty.
	Places map[string]diag.Diagnostic `json:"-"`
}

// NodeConfig is one node of a target file.
type NodeConfig struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Address string `json:"address,omitempty"`
	// Serial and UUID are the machine's own identity (DMI), if the owner has entered it.
	Serial string `json:"serial,omitempty"`
	UUID   string `json:"uuid,omitempty"`
	// ExporterPort is the port of a Prometheus exporter at Address; 0: none.
	ExporterPort int `json:"exporter_port,omitempty"`
	// Endpoint is the address of this node's management, for platforms that manage each node separately.
	Endpoint string `json:"endpoint,omitempty"`
	BMC      *BMC   `json:"bmc,omitempty"`
}

// Addresses defines how VMs get their addresses: by DHCP, or from a range that the owner reserved.
type Addresses struct {
	DHCP    bool   `json:"dhcp,omitempty"`
	First   string `json:"first,omitempty"`
	Last    string `json:"last,omitempty"`
	Prefix  int    `json:"prefix,omitempty"`
	Gateway string `json:"gateway,omitempty"`
}

// Simulating adds what the owner says of the platform to an inventory. It takes the results of Target.Inventory.
func (c *Config) Simulating(i Inventory, err error) (Inventory, error) {
	if len(c.Simulates) > 0 {
		all := maps.Clone(c.Simulates)
		maps.Copy(all, i.Simulates)
		i.Simulates = all
	}
	return i, err
}

// Trust returns how the certificate of the endpoint is checked. service names it in messages: "vCenter".
func (c *Config) Trust(service string) trust.Service {
	return trust.Service{Name: service, Fingerprint: c.Fingerprint, CAFile: c.CAFile, Unverified: c.TLS == TLSUnverified}
}

// Allow defines what the owner allows runs to do beyond their own VMs.
type Allow struct {
	NodePower bool `json:"node_power"`
	// Maintenance: runs may put nodes into maintenance, which moves the VMs of all users.
	Maintenance bool `json:"maintenance,omitempty"`
	// CVMs: a power cut of a node may take the controller VM of its storage down, on Nutanix clusters.
	CVMs bool `json:"cvms,omitempty"`
	// ContainerSettings: runs may change settings of the storage container, which concern all its users, and restore them.
	ContainerSettings bool `json:"container_settings,omitempty"`
	// Overrides names checks before a power cut that are skipped, see Overrides. The report lists them.
	Overrides []string `json:"overrides,omitempty"`
}

// Health is the owner's own check of whether the target is fully redundant: a program, or a Prometheus query. It is made
// before each power cut.
type Health struct {
	Command    []string `json:"command,omitempty"`    // succeeds when the target has recovered
	Prometheus string   `json:"prometheus,omitempty"` // address of the server
	Query      string   `json:"query,omitempty"`      // returns at least one series if the target has recovered
}

// Credential is a user and a reference to the secret. The secret itself is never in a target file.
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

// CodeSecret is the code of errors of secrets that cannot be read.
const CodeSecret = "target-secret"

const (
	secretBytesMax  = 64 << 10
	secretTimeLimit = 30 * time.Second
)

// Read fetches the secret, without its last line feed. Errors are for the user and have the code target-secret.
func (s Secret) Read(ctx context.Context) (string, error) {
	var text []byte
	switch {
	case s.Env != "":
		value, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", unreadable("export it before you start bragg; sudo drops it unless it is in sudo --preserve-env="+s.Env,
				"environment variable %q is not set", s.Env)
		}
		text = []byte(value)
	case s.File != "":
		info, err := os.Stat(s.File)
		if err != nil {
			return "", unreadable("write the password, and nothing else, to that file: chmod 600", "%w", err)
		}
		if !info.Mode().IsRegular() || info.Size() > secretBytesMax {
			return "", unreadable("", "%q is not a regular file of at most %d bytes", s.File, secretBytesMax)
		}
		if text, err = os.ReadFile(s.File); err != nil {
			return "", unreadable("", "%w", err)
		}
	case len(s.Command) > 0:
		ctx, cancel := context.WithTimeout(ctx, secretTimeLimit)
		defer cancel()
		command := exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
		Apart(command)
		var err error
		if text, err = command.Output(); err != nil {
			return "", unreadable("the program must print the password to its standard output, without a prompt", "run %q: %w", s.Command[0], err)
		}
	default:
		return "", unreadable("", "no reference")
	}
	if len(text) > secretBytesMax {
		return "", unreadable("", "more than %d bytes", secretBytesMax)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

func unreadable(hint, format string, args ...any) error {
	return &diag.Error{Code: CodeSecret, Exit: diag.ExitUnavailable, Message: "read secret", Hint: hint, Err: fmt.Errorf(format, args...)}
}

const (
	virtualNodesDefault = 4
	virtualNodesMax     = 256
)

// MakeNodes returns the nodes of a provider that makes its own, in the number from the target file.
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

// Template returns what the target file says of a template. An unknown one is an error with exit code diag.ExitUnavailable.
func (c *Config) Template(name string) (string, error) {
	value, ok := c.Templates[name]
	if ok {
		return value, nil
	}
	e := &diag.Error{
		Code: "target-unknown-template", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("find template %q: not in the target file", name),
		Hint: "name it in \"templates\" of the target file",
	}
	if near := diag.Nearest(name, c.TemplateNames()); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return "", e
}

// TemplateNames are the templates of the target file, sorted.
func (c *Config) TemplateNames() []string { return slices.Sorted(maps.Keys(c.Templates)) }

// InFolder makes relative paths of certificates and secrets those of a folder: that of the target file, wherever the program runs.
func (c *Config) InFolder(dir string) {
	place := func(path *string) {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	place(&c.CAFile)
	for i := range c.Sources {
		place(&c.Sources[i].CAFile)
	}
	for _, n := range c.Nodes {
		if n.BMC != nil {
			place(&n.BMC.CAFile)
		}
	}
	for name, credential := range c.Credentials {
		place(&credential.Secret.File)
		c.Credentials[name] = credential
	}
}
