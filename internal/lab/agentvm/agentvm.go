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

const agentPort = "7401"

const (
	agentConfig = "/etc/bragg/agent.json"
	machineID   = "/etc/machine-id"
)

// place is where the file of a VM is on this machine, below the folder of the VM.
func place(dir, path string) string {
	return filepath.Join(dir, "root", filepath.FromSlash(filepath.Clean("/"+path)))
}

// Identity is where Unpack writes the machine-id of a VM: agents of several VMs with one would count as copies of one system.
func Identity(dir string) string { return place(dir, machineID) }

// Unpack does what cloud-init would do with user data: it writes its files below dir, private to root, and returns the path of the
// agent's configuration, "" if there is none. The configuration names the files where they are, and listeners move to the address.
func Unpack(userData []byte, address, dir string) (config string, err error) {
	var user struct {
		Files []struct {
			Path    string `yaml:"path"`
			Content string `yaml:"content"`
		} `yaml:"write_files"`
	}
	if strings.HasPrefix(string(userData), "#cloud-config") {
		if err := yaml.Unmarshal(userData, &user); err != nil {
			return "", fmt.Errorf("read user data: %w", err)
		}
	}
	places := map[string]string{}
	for _, f := range user.Files {
		at := place(dir, f.Path)
		if places[f.Path] = at; f.Path == agentConfig {
			config = at
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(at, []byte(f.Content), 0o600); err != nil {
			return "", err
		}
	}
	if config == "" {
		return "", nil
	}
	return config, relocate(config, places, address)
}

// relocate makes a configuration name the files where they are, and listen at the address.
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
		if at, ok := places[v]; ok {
			return at
		}
	}
	return v
}

// Enclose begins a shell script in a mount namespace of its own, which it gives the machine-id and the /dev of a VM. Arguments are the
// path of Identity, pairs of a device below /dev and a file, and "--"; what follows them is left for the rest of the script.
const Enclose = `set -e
if [ -f "$1" ] && [ -f /etc/machine-id ]; then mount --bind "$1" /etc/machine-id; fi
shift
mount -t tmpfs -o mode=755,size=1m bragg /mnt
for node in null zero full random urandom tty; do
	if [ -e /dev/$node ]; then : > /mnt/$node; mount --bind /dev/$node /mnt/$node; fi
done
for one in shm pts mqueue; do if [ -d /dev/$one ]; then mkdir /mnt/$one; mount --bind /dev/$one /mnt/$one; fi; done
ln -s /proc/self/fd /mnt/fd
while [ "$1" != -- ]; do
	name=${1#/dev/}
	case $name in */*) mkdir -p "/mnt/${name%/*}";; esac
	: > "/mnt/$name"; mount --bind "$2" "/mnt/$name"; shift 2
done
shift
mount --move /mnt /dev
`
