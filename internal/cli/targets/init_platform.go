package targets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/target/kube/rights"
)

// platform is what target files say about one kind of cluster that lists its nodes by itself.
type platform struct {
	endpoint        string // what it is: "Prism Central"
	user            string // the usual one
	secret          string // example of its location
	pool, network   string // what they are; network "": VMs get none that can be chosen
	images, example string // what an image may be
	option          string // example of an option
	kubeconfig      bool   // endpoint and secret may be left out
	cvms            bool
}

var platforms = map[string]platform{
	"nutanix": {
		endpoint: "Prism Central", user: "admin", secret: "env:PRISM_PASSWORD", pool: "Storage container", network: "Subnet",
		images:  "an image of Prism by name or id, or the path of a file (with a slash), which is uploaded once",
		example: "bragg-debian-12", option: "cluster: NAME  # if Prism Central manages several", cvms: true,
	},
	"vsphere": {
		endpoint: "vCenter", user: "bragg@vsphere.local", secret: "env:VCENTER_PASSWORD", pool: "Datastore", network: "Port group",
		images:  "a template of vCenter by name, or an OVA or OVF file, which is imported once",
		example: "bragg-debian-12", option: "cluster: NAME  # if vCenter manages several",
	},
	"kubernetes": {
		endpoint: "the API server", secret: "file:/etc/bragg/token", pool: "Storage class",
		images: "a container image, for groups that need another one than the option image", example: "registry.example.com/bragg-pgbench:1.0",
		option: "namespace: bench", kubeconfig: true,
	},
}

// writePlatform writes the part of a target whose platform finds its hosts by itself.
func (t *initTarget) writePlatform(b *strings.Builder, p platform) error {
	if err := t.writeEndpoint(b, p); err != nil {
		return err
	}
	if err := t.writeSecrets(b, p); err != nil {
		return err
	}
	t.writeNamed(b, p.pool, "pool", t.pool)
	if p.network != "" {
		t.writeNamed(b, p.network, "network", t.network)
		if err := t.writeAddresses(b); err != nil {
			return err
		}
	}
	if t.virtual() {
		p.images, p.example = virtualImages, "registry.example.com/debian-bragg:12"
	}
	if err := t.writeTemplates(b, p.images, p.example); err != nil {
		return err
	}
	if err := t.writeOptionalNodes(b); err != nil {
		return err
	}
	b.WriteString("\n# Allow runs to power nodes off and on")
	if p.cvms {
		b.WriteString(". That takes their CVMs down too, which is allowed apart")
	}
	fmt.Fprintf(b, ".\nallow:\n  node_power: %v\n", t.power)
	if p.cvms {
		fmt.Fprintf(b, "  cvms: %v\n", t.power)
	}
	return t.writeOptions(b, p)
}

// virtualImages is what VMs of KubeVirt boot.
const virtualImages = "a container disk, pvc:NAME for copies of a claim, or kernel:IMAGE for an image with the kernel of bragg image build"

// virtual reports whether VMs are those of KubeVirt.
func (t *initTarget) virtual() bool { return slices.Contains(t.options, "kind="+rights.KindKubeVirt) }

func (t *initTarget) writeEndpoint(b *strings.Builder, p platform) error {
	switch {
	case t.endpoint != "":
		fmt.Fprintf(b, "# Address of %s.\nendpoint: %s\n", p.endpoint, quoteYAML(t.endpoint))
	case p.kubeconfig:
		fmt.Fprintf(b, "# Without an endpoint the kubeconfig is used, as kubectl does.\n# endpoint: https://10.0.0.1:6443\n")
		return nil
	}
	if t.fingerprint != "" {
		fmt.Fprintf(b, "fingerprint: %s\n", quoteYAML(t.fingerprint))
		return nil
	}
	b.WriteString("# SHA-256 of its certificate, if no known authority signed it: bragg targets check shows it.\n# fingerprint: sha256:…\n")
	return nil
}

func (t *initTarget) writeSecrets(b *strings.Builder, p platform) error {
	if t.secret == "" && t.bmcSecret == "" {
		return nil
	}
	b.WriteString("\n# Location of secrets: env, file or command. This file contains no secrets.\ncredentials:\n")
	for _, one := range []struct{ name, flag, user, secret string }{
		{"platform", "--secret", t.user, t.secret}, {"bmc", "--bmc-secret", t.bmcUser, t.bmcSecret},
	} {
		if one.secret == "" {
			continue
		}
		reference, err := secretReference(one.flag, one.secret)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "  %s:\n", one.name)
		if one.user != "" {
			fmt.Fprintf(b, "    user: %s\n", quoteYAML(one.user))
		}
		fmt.Fprintf(b, "    secret: %s\n", reference)
	}
	return nil
}

// writeNamed writes a setting that may be left out.
func (t *initTarget) writeNamed(b *strings.Builder, what, key, value string) {
	fmt.Fprintf(b, "\n# %s, by name; not needed if there is only one, or a default.\n", what)
	if value == "" {
		fmt.Fprintf(b, "# %s: NAME\n", key)
		return
	}
	fmt.Fprintf(b, "%s: %s\n", key, quoteYAML(value))
}

func (t *initTarget) writeOptions(b *strings.Builder, p platform) error {
	b.WriteString("\n# Options of the provider: docs/formats/target.md\n")
	if len(t.options) == 0 {
		fmt.Fprintf(b, "# options:\n#   %s\n", p.option)
		return nil
	}
	b.WriteString("options:\n")
	for _, text := range t.options {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || value == "" {
			return console.BadFlag("--option "+quoteYAML(text)+" is not NAME=VALUE", "for example --option cluster=rack9")
		}
		fmt.Fprintf(b, "  %s: %s\n", quoteYAML(name), quoteYAML(value))
	}
	return nil
}

// writeOptionalNodes writes hosts of a platform that lists its hosts: only those with BMCs are needed.
func (t *initTarget) writeOptionalNodes(b *strings.Builder) error {
	b.WriteString("\n# Hosts are found. Listed ones come first, and may have a BMC: docs/guides/power.md\n")
	if len(t.nodes) == 0 && len(t.bmcs) == 0 {
		b.WriteString("# nodes:\n#   - id: host-1\n#     bmc: {protocol: redfish, address: 10.0.1.11, credential: bmc}\n")
		return nil
	}
	nodes, err := t.hosts()
	if err != nil {
		return err
	}
	b.WriteString("nodes:\n")
	for _, n := range nodes {
		fmt.Fprintf(b, "  - id: %s\n", quoteYAML(n.id))
		if protocol, address, ok := strings.Cut(n.bmc, ":"); ok {
			fmt.Fprintf(b, "    bmc: {protocol: %s, address: %s, credential: bmc}\n", quoteYAML(protocol), quoteYAML(address))
		}
	}
	return nil
}

// validatePlatform checks the flags of platforms with an endpoint.
func (t *initTarget) validatePlatform(p platform) error {
	switch {
	case t.endpoint == "" && !p.kubeconfig:
		return console.BadFlag("--endpoint is missing", "the address of "+p.endpoint)
	case p.kubeconfig && (t.endpoint == "") != (t.secret == ""):
		return console.BadFlag("--endpoint and --secret go together", "without both, the kubeconfig is used")
	case !p.kubeconfig && (t.user == "" || t.secret == ""):
		return console.BadFlag("--user or --secret is missing", "for example --user "+p.user+" --secret "+p.secret)
	case p.network == "" && (t.network != "" || t.addresses != ""):
		return console.BadFlag("--network and --addresses are not for --provider "+t.provider, "")
	case len(t.bmcs) > 0 && len(t.nodes) == 0:
		return console.BadFlag("--bmc needs --node", "name each host with a BMC: --node "+cmp.Or(firstID(t.bmcs), "host-1"))
	}
	return nil
}

func firstID(bmcs []string) string {
	id, _, _ := strings.Cut(bmcs[0], "=")
	return id
}

// askPlatform asks for what has no default. The password itself is not among it.
func (t *initTarget) askPlatform(p platform, question func(text, byDefault string) (string, error)) error {
	for _, one := range []struct {
		to              *string
		text, byDefault string
		skip            bool
	}{
		{&t.endpoint, "Address of " + p.endpoint, "", p.kubeconfig},
		{&t.user, "User of " + p.endpoint, p.user, p.kubeconfig},
		{&t.secret, "Location of the password: env:NAME, file:PATH or command:PROGRAM ARGUMENTS", p.secret, p.kubeconfig},
		{&t.pool, p.pool + " for disks of VMs; empty: the only one, or a default", "", false},
	} {
		if *one.to != "" || one.skip {
			continue
		}
		var err error
		if *one.to, err = question(one.text, one.byDefault); err != nil {
			return err
		}
	}
	if p.kubeconfig {
		return t.askOptions(question)
	}
	if len(t.templates) > 0 {
		return nil
	}
	image, err := question("Image that VMs boot: "+p.images, "")
	if image != "" {
		t.templates = []string{"ubuntu1604=" + image}
	}
	return err
}

// askOptions asks for what VMs in a cluster need.
func (t *initTarget) askOptions(question func(text, byDefault string) (string, error)) error {
	if len(t.options) > 0 {
		return nil
	}
	for _, one := range [][3]string{
		{"namespace", "Namespace", ""}, {"kind", "Kind of VMs: " + strings.Join(rights.Kinds(), " or "), rights.KindPod}, {"image", "Container image with bragg-agent", ""},
	} {
		if one[0] == "image" && t.virtual() {
			one[1] = "Image that VMs boot: " + virtualImages
		}
		answer, err := question(one[1], one[2])
		if err != nil {
			return err
		}
		if answer != "" {
			t.options = append(t.options, one[0]+"="+answer)
		}
	}
	return nil
}
