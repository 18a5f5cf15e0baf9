package targets

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/console"
	targetbuiltin "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/textio"
)

// sshPoolDefault is where the provider ssh keeps disks of VMs.
const sshPoolDefault = "/var/tmp"

// text returns the target file.
func (t *initTarget) text(file string) (string, error) {
	if err := t.validate(); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Bragg target file. docs/formats/target.md describes every key. Check:\n#   %s\n",
		textio.Shell("bragg", "targets", "check", file))
	fmt.Fprintf(&b, "provider: %s\nname: %s  # name in reports\n\n", t.provider, quoteYAML(cmp.Or(t.name, t.provider)))
	var err error
	p, cluster := platforms[t.provider]
	switch {
	case t.provider == "local":
		err = t.writeLocal(&b)
	case cluster:
		err = t.writePlatform(&b, p)
	default:
		err = t.writeHosts(&b)
	}
	if err != nil {
		return "", err
	}
	b.WriteString("\n# Facts for reports: conditions worth knowing about these numbers in a year.\n" +
		"# facts:\n#   disk: Samsung 990 Pro\n#   compression: off\n")
	return b.String(), nil
}

// validate refuses values that no target file can express; the parser of target files checks the rest.
func (t *initTarget) validate() error {
	var known []string
	for _, provider := range targetbuiltin.Providers() {
		if provider.Name != "fake" { // needs no file
			known = append(known, provider.Name)
		}
	}
	p, cluster := platforms[t.provider]
	switch {
	case t.provider == "":
		return console.BadFlag("--provider is missing", "choose one of "+strings.Join(known, ", "))
	case !slices.Contains(known, t.provider):
		return console.BadFlag("unknown provider "+strconv.Quote(t.provider), "choose one of "+strings.Join(known, ", "))
	case !cluster && (t.endpoint != "" || t.user != "" || t.secret != "" || t.fingerprint != "" || len(t.options) > 0):
		return console.BadFlag("--endpoint, --user, --secret, --fingerprint and --option are for --provider vsphere, nutanix and kubernetes", "")
	case cluster:
		if err := t.validatePlatform(p); err != nil {
			return err
		}
	case t.provider != "local" && len(t.nodes) == 0:
		return console.BadFlag("--node is missing", "name each host: --node left=root@10.0.0.11")
	case t.provider != "libvirt" && (t.network != "" || t.addresses != "" || len(t.templates) > 0):
		return console.BadFlag("--network, --addresses and --template are not for --provider "+t.provider, "")
	case t.provider == "local" && (t.pool != "" || len(t.bmcs) > 0 || t.power):
		return console.BadFlag("--pool, --bmc and --allow-node-power have no meaning for --provider local", "nodes of the local target are virtual")
	}
	if len(t.bmcs) > 0 && (t.bmcUser == "" || t.bmcSecret == "") {
		return console.BadFlag("--bmc needs --bmc-user and --bmc-secret", "for example --bmc-user ADMIN --bmc-secret env:BMC_PASSWORD")
	}
	return nil
}

func (t *initTarget) writeLocal(b *strings.Builder) error {
	count := "4"
	if len(t.nodes) > 0 {
		count = t.nodes[0]
	}
	if n, err := strconv.Atoi(count); err != nil || n < 1 || len(t.nodes) > 1 {
		return console.BadFlag("--node "+strconv.Quote(strings.Join(t.nodes, " "))+": nodes of the local target are virtual: give their number", "for example --node 4")
	}
	fmt.Fprintf(b, "# Number of virtual nodes.\nnodes: %s\n\n"+
		"# CPU and memory limits of VMs by cgroups: auto or off.\noptions:\n  cgroups: auto\n", count)
	return nil
}

// initNode is a host as given by the flags.
type initNode struct{ id, address, bmc string }

// writeHosts writes the common part of ssh and libvirt targets, and the specific parts.
func (t *initTarget) writeHosts(b *strings.Builder) error {
	nodes, err := t.hosts()
	if err != nil {
		return err
	}
	key, reached := "address", "ssh must work without a prompt: ssh -o BatchMode=yes HOST true"
	if t.provider == "libvirt" {
		key, reached = "endpoint", "an endpoint is qemu:///system for this machine, or qemu+ssh://USER@HOST/system"
	}
	fmt.Fprintf(b, "# Hosts, in the order of node slices of scenarios; %s\nnodes:\n", reached)
	for _, n := range nodes {
		fmt.Fprintf(b, "  - id: %s\n    %s: %s\n", quoteYAML(n.id), key, quoteYAML(n.address))
		if n.bmc == "" {
			fmt.Fprintf(b, "    # bmc: {protocol: redfish, address: 10.0.1.11, credential: bmc}  # to cut its power: docs/guides/power.md\n")
			continue
		}
		protocol, address, _ := strings.Cut(n.bmc, ":")
		fmt.Fprintf(b, "    bmc: {protocol: %s, address: %s, credential: bmc}\n", quoteYAML(protocol), quoteYAML(address))
	}
	if t.provider == "libvirt" {
		err = t.writeLibvirt(b)
	} else {
		fmt.Fprintf(b, "\n# Folder on every host for VM disks; its file system is measured.\npool: %s\n\n"+
			"# Passed to ssh with -o.\n# options:\n#   ssh_options: IdentityFile=/home/me/.ssh/lab ProxyJump=gate\n", quoteYAML(cmp.Or(t.pool, sshPoolDefault)))
	}
	if err != nil {
		return err
	}
	if err := t.writeCredentials(b); err != nil {
		return err
	}
	fmt.Fprintf(b, "\n# Allow runs to power nodes off and on.\nallow:\n  node_power: %v\n", t.power)
	return nil
}

// hosts reads --node and --bmc.
func (t *initTarget) hosts() ([]initNode, error) {
	var nodes []initNode
	for _, text := range t.nodes {
		n := initNode{address: text}
		if id, address, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(id, ":/@?") {
			n.id, n.address = id, address
		}
		if t.provider == "libvirt" && !strings.Contains(n.address, "://") && n.address != "qemu:///system" {
			n.address = "qemu+ssh://" + n.address + "/system"
		}
		if n.id == "" {
			n.id = hostOf(n.address)
		}
		if slices.ContainsFunc(nodes, func(known initNode) bool { return known.id == n.id }) {
			return nil, console.BadFlag("--node "+strconv.Quote(text)+": the id "+strconv.Quote(n.id)+" is taken", "use unique ids: --node left=ADDRESS")
		}
		nodes = append(nodes, n)
	}
	for _, text := range t.bmcs {
		id, bmc, ok := strings.Cut(text, "=")
		protocol, address, named := strings.Cut(bmc, ":")
		at := slices.IndexFunc(nodes, func(n initNode) bool { return n.id == id })
		if !ok || !named || address == "" || protocol != "redfish" && protocol != "ipmi" || at < 0 {
			var ids []string
			for _, n := range nodes {
				ids = append(ids, n.id)
			}
			return nil, console.BadFlag("--bmc "+strconv.Quote(text)+" is not ID=PROTOCOL:ADDRESS", "such as "+nodes[0].id+"=redfish:10.0.1.11; ids are "+strings.Join(ids, ", "))
		}
		nodes[at].bmc = bmc
	}
	return nodes, nil
}

// hostOf is only the host name: for root@10.0.0.11:22 and qemu+ssh://root@10.0.0.11/system it is 10.0.0.11.
func hostOf(address string) string {
	text := address
	if !strings.Contains(text, "://") {
		text = "ssh://" + text
	}
	if u, err := url.Parse(text); err == nil {
		return cmp.Or(u.Hostname(), "this-machine")
	}
	return address
}

func (t *initTarget) writeLibvirt(b *strings.Builder) error {
	fmt.Fprintf(b, "\n# Storage pool, active on every host.\npool: %s\n", quoteYAML(cmp.Or(t.pool, "default")))
	fmt.Fprintf(b, "# libvirt network, or bridge:NAME.\nnetwork: %s\n", quoteYAML(cmp.Or(t.network, "default")))
	if err := t.writeAddresses(b); err != nil {
		return err
	}
	return t.writeTemplates(b, "a cloud-init volume of the pool, or a folder of bragg image build (a name\n# with a slash)",
		"debian-12-generic-amd64.qcow2")
}

func (t *initTarget) writeAddresses(b *strings.Builder) error {
	b.WriteString("# VM addresses: dhcp, or {first, last, prefix, gateway} of an unused range.\n")
	if t.addresses == "" || t.addresses == "dhcp" {
		b.WriteString("addresses: dhcp\n")
	} else {
		hosts, gateway, _ := strings.Cut(t.addresses, ",")
		addresses, prefix, ok := strings.Cut(hosts, "/")
		first, last, ranged := strings.Cut(addresses, "-")
		if _, err := strconv.Atoi(prefix); !ok || !ranged || err != nil {
			return console.BadFlag("--addresses "+strconv.Quote(t.addresses)+" is not FIRST-LAST/PREFIX[,GATEWAY]", "for example 10.0.2.10-10.0.2.200/24,10.0.2.1")
		}
		fmt.Fprintf(b, "addresses: {first: %s, last: %s, prefix: %s", quoteYAML(first), quoteYAML(last), prefix)
		if gateway != "" {
			fmt.Fprintf(b, ", gateway: %s", quoteYAML(gateway))
		}
		b.WriteString("}\n")
	}
	return nil
}

// writeTemplates writes the templates of scenarios; kinds says what an image may be.
func (t *initTarget) writeTemplates(b *strings.Builder, kinds, example string) error {
	fmt.Fprintf(b, "\n# Templates of scenarios and their images: %s.\n", kinds)
	if len(t.templates) == 0 {
		fmt.Fprintf(b, "# templates:\n#   ubuntu1604: %s\n", example)
		return nil
	}
	b.WriteString("templates:\n")
	for _, text := range t.templates {
		name, image, ok := strings.Cut(text, "=")
		if !ok || name == "" || image == "" {
			return console.BadFlag("--template "+strconv.Quote(text)+" is not NAME=IMAGE", "for example --template ubuntu1604=debian-12.qcow2")
		}
		fmt.Fprintf(b, "  %s: %s\n", quoteYAML(name), quoteYAML(image))
	}
	return nil
}

// writeCredentials writes where the secret of BMCs is stored.
func (t *initTarget) writeCredentials(b *strings.Builder) error {
	b.WriteString("\n# Location of secrets: env, file or command. This file contains no secrets.\n")
	if t.bmcSecret == "" {
		b.WriteString("# credentials:\n#   bmc:\n#     user: ADMIN\n#     secret: {env: BMC_PASSWORD}\n")
		return nil
	}
	reference, err := secretReference("--bmc-secret", t.bmcSecret)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "credentials:\n  bmc:\n    user: %s\n    secret: %s\n", quoteYAML(t.bmcUser), reference)
	return nil
}

// secretReference reads the value of a flag. One that is not a reference is refused and not printed, because it may be the secret
// itself.
func secretReference(flag, given string) (string, error) {
	kind, value, _ := strings.Cut(given, ":")
	reference := quoteYAML(value)
	switch {
	case value == "" || kind != "env" && kind != "file" && kind != "command":
		return "", console.BadFlag("invalid "+flag, "use env:NAME, file:PATH or command:PROGRAM ARGUMENTS; never the secret itself")
	case kind == "command":
		var words []string
		for _, word := range strings.Fields(value) {
			words = append(words, quoteYAML(word))
		}
		reference = "[" + strings.Join(words, ", ") + "]"
	}
	return fmt.Sprintf("{%s: %s}", kind, reference), nil
}

// quoteYAML quotes a text for YAML, whose double-quoted strings support all escapes of Go.
func quoteYAML(s string) string { return strconv.Quote(s) }
