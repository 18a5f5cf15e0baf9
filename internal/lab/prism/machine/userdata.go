package machine

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/lab/prism/state"
)

// cloudConfig is what counts of a document "#cloud-config".
type cloudConfig struct {
	Files []struct {
		Path    string `yaml:"path"`
		Content string `yaml:"content"`
	} `yaml:"write_files"`
}

// agentConfigName is the agent's configuration among the files that cloud-init writes.
const agentConfigName = "agent.json"

// writeFiles does what cloud-init would for the agent: it writes the files next to the VM and returns the path of the agent's
// configuration there, "" if the user data has none. Listeners move to the address of the VM.
func writeFiles(dir string, m state.Machine) (string, error) {
	var c cloudConfig
	if strings.HasPrefix(string(m.UserData), "#cloud-config") {
		if err := yaml.Unmarshal(m.UserData, &c); err != nil {
			return "", fmt.Errorf("read user data: %w", err)
		}
	}
	root, config := filepath.Join(dir, "root"), ""
	places := map[string]string{}
	for _, f := range c.Files {
		place := filepath.Join(root, filepath.FromSlash(path.Clean("/"+f.Path)))
		places[f.Path] = place
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(place, []byte(f.Content), 0o600); err != nil {
			return "", err
		}
		if path.Base(f.Path) == agentConfigName {
			config = place
		}
	}
	if config == "" {
		return "", nil
	}
	if len(m.Addresses) == 0 {
		return "", nil // without a network it answers nothing
	}
	return config, relocate(config, places, m.Addresses[0])
}

// relocate makes a configuration name the files where they are, and listen at the VM's address.
func relocate(config string, places map[string]string, address string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var c map[string]any
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("read the agent's configuration: %w", err)
	}
	for _, key := range []string{"listen", "metrics_listen"} {
		if at, ok := c[key].(string); ok && at != "" {
			_, port, err := net.SplitHostPort(at)
			if err != nil {
				return fmt.Errorf("agent's %s: %w", key, err)
			}
			c[key] = net.JoinHostPort(address, port)
		}
	}
	if text, err = json.Marshal(moved(c, places)); err != nil {
		return err
	}
	return os.WriteFile(config, text, 0o600)
}

// moved replaces strings that are paths of written files.
func moved(v any, places map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, one := range v {
			v[k] = moved(one, places)
		}
	case []any:
		for i, one := range v {
			v[i] = moved(one, places)
		}
	case string:
		if place, ok := places[v]; ok {
			return place
		}
	}
	return v
}
