package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/crypto/ssh"

	"github.com/braggdev/bragg/internal/guest"
)

// The documents of cloud-init's NoCloud source. The YAML library writes each of them from these types: external input
// cannot become structure.
type (
	userData struct {
		Hostname         string      `yaml:"hostname"`
		PreserveHostname bool        `yaml:"preserve_hostname"`
		PasswordLogin    bool        `yaml:"ssh_pwauth"`
		DeleteHostKeys   bool        `yaml:"ssh_deletekeys"` // so that clones do not share them
		HostKeyTypes     []string    `yaml:"ssh_genkeytypes,flow"`
		HostKeys         *cloudKeys  `yaml:"ssh_keys,omitempty"` // instead of new ones
		RootLocked       bool        `yaml:"disable_root"`
		Users            []cloudUser `yaml:"users,omitempty"` // none: the image's own user, whose password is locked
		WriteFiles       []cloudFile `yaml:"write_files"`
		RunCommands      [][]string  `yaml:"runcmd"`
	}
	cloudUser struct {
		Name         string   `yaml:"name"`
		Keys         []string `yaml:"ssh_authorized_keys,omitempty"`
		Shell        string   `yaml:"shell,omitempty"`
		LockPassword bool     `yaml:"lock_passwd"`
		Sudo         string   `yaml:"sudo,omitempty"`
	}
	cloudKeys struct {
		Private string `yaml:"ed25519_private"`
		Public  string `yaml:"ed25519_public"`
	}
	cloudFile struct {
		Path        string `yaml:"path"`
		Owner       string `yaml:"owner"`
		Permissions string `yaml:"permissions"`
		Content     string `yaml:"content"`
	}
	metaData struct {
		InstanceID string `yaml:"instance-id"`
		Hostname   string `yaml:"local-hostname"`
	}
	networkConfig struct {
		Version   int                      `yaml:"version"`
		Ethernets map[string]cloudEthernet `yaml:"ethernets"`
	}
	cloudEthernet struct {
		Match          map[string]string `yaml:"match"`
		DHCP           bool              `yaml:"dhcp4"`
		DHCPIdentifier string            `yaml:"dhcp-identifier,omitempty"`
		Addresses      []string          `yaml:"addresses,omitempty"`
		Routes         []cloudRoute      `yaml:"routes,omitempty"`
		MTU            int               `yaml:"mtu,omitempty"`
	}
	cloudRoute struct {
		To  string `yaml:"to"`
		Via string `yaml:"via"`
	}
)

// unit starts the agent. Its configuration is a file, so that this text contains no outside input.
const unit = `[Unit]
Description=Bragg agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=` + ProgramPath + ` ` + configPath + `
Restart=on-failure
RestartSec=2
OOMScoreAdjust=-900
LimitNOFILE=1048576
LimitMEMLOCK=infinity

[Install]
WantedBy=multi-user.target
`

const unitName = "bragg-agent.service"

// hostKeyTypes are accepted by all current clients. An additional RSA key takes half a minute on an emulated processor.
var hostKeyTypes = []string{"ed25519", "ecdsa"}

// cloudInit adds cloud-init's files to a seed.
func (g Guest) cloudInit(s guest.Seed, files map[string][]byte) error {
	config, err := json.Marshal(s.Agent)
	if err != nil {
		return err
	}
	u := userData{
		Hostname: s.Hostname, DeleteHostKeys: true, HostKeyTypes: hostKeyTypes, RootLocked: len(g.RootKeys) == 0,
		WriteFiles: []cloudFile{
			// systemd and DHCP clients derive identities from this file, which clones would otherwise share.
			{"/etc/machine-id", "root:root", "0444", s.MachineID + "\n"},
			{configPath, "root:root", "0600", string(config) + "\n"},
			{"/etc/systemd/system/" + unitName, "root:root", "0644", unit},
		},
		RunCommands: g.commands(),
	}
	for _, path := range []string{certificatePath, keyPath, authorityPath} {
		u.WriteFiles = append(u.WriteFiles, cloudFile{path, "root:root", "0600", s.Files[path]})
	}
	if g.User != "" {
		u.Users = append(u.Users, cloudUser{Name: g.User, Keys: g.Keys, Shell: "/bin/bash", LockPassword: true, Sudo: "ALL=(ALL) NOPASSWD:ALL"})
	}
	if len(g.RootKeys) > 0 {
		u.Users = append(u.Users, cloudUser{Name: "root", Keys: g.RootKeys, LockPassword: true})
	}
	if g.HostKey != "" {
		signer, err := ssh.ParsePrivateKey([]byte(g.HostKey))
		if err != nil {
			return fmt.Errorf("host key: %w", err)
		}
		u.HostKeys = &cloudKeys{g.HostKey, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))}
	}
	for name, document := range map[string]any{
		"user-data": u, "meta-data": metaData{InstanceID: s.InstanceID, Hostname: s.Hostname}, "network-config": networkOf(s.Network),
	} {
		text, err := yaml.Marshal(document)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files[name] = text
	}
	files["user-data"] = append([]byte("#cloud-config\n"), files["user-data"]...)
	return nil
}

// CloudInit returns the documents of cloud-init for a VM, as platforms take them that offer no disk for a seed: user data, meta
// data and the network's configuration (version 2). The user data holds the agent's key and must be kept as secret. The image has
// the agent at ProgramPath: a Program is refused.
func CloudInit(g Guest) (user, meta, network []byte, err error) {
	if g.Program != nil {
		return nil, nil, nil, errors.New("the documents of cloud-init have no room for a program")
	}
	s, err := g.document()
	if err != nil {
		return nil, nil, nil, err
	}
	files := map[string][]byte{}
	if err := g.cloudInit(s, files); err != nil {
		return nil, nil, nil, fmt.Errorf("write cloud-init's documents of VM %q: %w", g.VM, err)
	}
	return files["user-data"], files["meta-data"], files["network-config"], nil
}

// commands are the commands that cloud-init runs at the first start of an instance.
func (g Guest) commands() (commands [][]string) {
	if g.Program != nil {
		const place = "/run/bragg-seed"
		commands = [][]string{
			{"mkdir", "-p", place},
			{"mount", "-t", "iso9660", "-o", "ro,nosuid,nodev", "/dev/disk/by-label/" + guest.VolumeLabel, place},
			{"install", "-o", "root", "-g", "root", "-m", "0755", place + "/" + programFile, ProgramPath},
			{"umount", place},
		}
	}
	return append(commands,
		[]string{"systemctl", "daemon-reload"},
		[]string{"systemctl", "enable", unitName},
		// Once the agent answers, the VM's power may be cut, and cloud-init does not repeat any of this.
		[]string{"sync"},
		[]string{"systemctl", "start", unitName})
}

// networkOf describes the network in version 2. DHCP uses the card's MAC address and not the machine-id, which is still
// that in the template when the first address is requested.
func networkOf(links []guest.Link) networkConfig {
	n := networkConfig{Version: 2, Ethernets: map[string]cloudEthernet{}}
	if len(links) == 0 {
		n.Ethernets["all"] = cloudEthernet{Match: map[string]string{"name": "e*"}, DHCP: true, DHCPIdentifier: "mac"}
	}
	for i, l := range links {
		e := cloudEthernet{Match: map[string]string{"name": "e*"}, MTU: l.MTU}
		if l.MAC != "" {
			e.Match = map[string]string{"macaddress": l.MAC}
		}
		if l.Address == "" {
			e.DHCP, e.DHCPIdentifier = true, "mac"
		} else {
			e.Addresses = []string{l.Address}
		}
		if l.Gateway != "" {
			e.Routes = []cloudRoute{{To: everywhere(l.Gateway), Via: l.Gateway}}
		}
		n.Ethernets[fmt.Sprintf("link%d", i)] = e
	}
	return n
}

// everywhere is the default route of a gateway's family.
func everywhere(gateway string) string {
	if strings.Contains(gateway, ":") {
		return "::/0"
	}
	return "0.0.0.0/0"
}
