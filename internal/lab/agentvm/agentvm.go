// Package agentvm replaces virtual machines by processes: one real agent for each VM that is on, with the identity that
// the user data of cloud-init gives it, an address of its own in 127/8, and files as its disks. Emulators of platforms run their VMs so.
//
//	Machines.Start(VM) ──▶ files of the user data ──▶ mount namespace with /dev/sdb, /dev/sdc, … ──▶ bragg-agent
//	Machines.Stop      ──▶ killed, as by a power cut; the files of the disks stay
//
// There is no guest system: what scenarios run in one, such as databases of a distribution, is not there.
package agentvm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// VM is a machine to start.
type VM struct {
	ID       string // of this power cycle's machine; one process runs for each
	UserData []byte // of cloud-init, with the agent's files and configuration, as image.CloudInit writes it
	Address  string // its own, in 127/8
	Disks    []Disk
}

// Disk is a data disk: a file that the agent sees as a device.
type Disk struct {
	Device string // "/dev/sdb"
	Path   string // of the file, which exists
}

// agentPort is where agents listen, whatever else the user data says of them.
const agentPort = "7401"

const configFile = "agent.json"

// machineFile is the machine-id of a VM: agents of several VMs with one would count as copies of one system.
const machineFile = "machine-id"

// errNoAgent means that the VM boots something else.
var errNoAgent = errors.New("the user data holds no agent")

// unpack does what cloud-init would do with the user data: it writes the agent's files to dir, private to root, and returns the
// path of its configuration, which listens on the VM's address.
func unpack(v VM, dir string) (path string, err error) {
	var user struct {
		Files []struct {
			Path    string `yaml:"path"`
			Content string `yaml:"content"`
		} `yaml:"write_files"`
	}
	if err := yaml.Unmarshal(v.UserData, &user); err != nil {
		return "", fmt.Errorf("read user data: %w", err)
	}
	var config map[string]any
	places := map[string]string{}
	for _, f := range user.Files {
		name := filepath.Base(f.Path)
		switch {
		case name == configFile:
			if err := json.Unmarshal([]byte(f.Content), &config); err != nil {
				return "", fmt.Errorf("read the agent's configuration: %w", err)
			}
		case f.Path == "/etc/machine-id":
			if err := os.WriteFile(filepath.Join(dir, machineFile), []byte(f.Content), 0o600); err != nil {
				return "", err
			}
		case strings.HasPrefix(f.Path, "/etc/bragg/"):
			places[f.Path] = filepath.Join(dir, name)
			if err := os.WriteFile(places[f.Path], []byte(f.Content), 0o600); err != nil {
				return "", err
			}
		}
	}
	tls, ok := config["tls"].(map[string]any)
	if !ok {
		return "", errNoAgent
	}
	for key, value := range tls {
		if text, ok := value.(string); ok && places[text] != "" {
			tls[key] = places[text]
		}
	}
	config["listen"] = net.JoinHostPort(v.Address, agentPort)
	if given, ok := config["metrics_listen"].(string); ok {
		_, port, err := net.SplitHostPort(given)
		if err != nil {
			return "", fmt.Errorf("read the agent's configuration: metrics_listen: %w", err)
		}
		config["metrics_listen"] = net.JoinHostPort(v.Address, port)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, configFile)
	return path, os.WriteFile(path, text, 0o600)
}
