package targets

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/console"
)

// writeNutanix writes the part of a target whose platform finds its hosts by itself.
func (t *initTarget) writeNutanix(b *strings.Builder) error {
	secret, err := secretReference("--secret", t.secret)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "# Prism Central; port 9440 unless it has another.\nendpoint: %s\n", quoteYAML(t.endpoint))
	if t.fingerprint != "" {
		fmt.Fprintf(b, "fingerprint: %s\n", quoteYAML(t.fingerprint))
	} else {
		b.WriteString("# SHA-256 of its certificate, if no known authority signed it: bragg targets check shows it.\n# fingerprint: sha256:…\n")
	}
	b.WriteString("\n# Location of secrets: env, file or command. This file contains no secrets.\ncredentials:\n")
	fmt.Fprintf(b, "  platform:\n    user: %s\n    secret: %s\n", quoteYAML(t.user), secret)
	if t.bmcSecret != "" {
		reference, err := secretReference("--bmc-secret", t.bmcSecret)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "  bmc:\n    user: %s\n    secret: %s\n", quoteYAML(t.bmcUser), reference)
	}
	b.WriteString("\n# Storage container and subnet, by name or id; not needed if there is only one.\n")
	for _, one := range [][2]string{{"pool", t.pool}, {"network", t.network}} {
		if one[1] != "" {
			fmt.Fprintf(b, "%s: %s\n", one[0], quoteYAML(one[1]))
		} else {
			fmt.Fprintf(b, "# %s: NAME\n", one[0])
		}
	}
	if err := t.writeAddresses(b); err != nil {
		return err
	}
	if err := t.writeTemplates(b, "an image of Prism by name or id, or the path of a file (with a slash), which is uploaded once",
		"bragg-debian-12"); err != nil {
		return err
	}
	if err := t.writeOptionalNodes(b); err != nil {
		return err
	}
	fmt.Fprintf(b, "\n# Allow runs to power nodes off and on. That takes their CVMs down too, which is allowed apart.\nallow:\n  node_power: %v\n"+
		"  cvms: %v\n", t.power, t.power)
	b.WriteString("\n# The cluster, if Prism Central manages several.\n# options:\n#   cluster: NAME\n")
	return nil
}

// writeOptionalNodes writes hosts of a platform that lists its hosts: only those with BMCs are needed.
func (t *initTarget) writeOptionalNodes(b *strings.Builder) error {
	b.WriteString("\n# Hosts are found. Listed ones come first, and may have a BMC: docs/guides/power.md\n")
	if len(t.nodes) == 0 && len(t.bmcs) == 0 {
		b.WriteString("# nodes:\n#   - id: ahv-1\n#     bmc: {protocol: redfish, address: 10.0.1.11, credential: bmc}\n")
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

// validateNutanix checks the flags of platforms with an endpoint.
func (t *initTarget) validateNutanix() error {
	switch {
	case t.endpoint == "":
		return console.BadFlag("--endpoint is missing", "the address of Prism Central: --endpoint prism.example.com")
	case t.user == "" || t.secret == "":
		return console.BadFlag("--user or --secret is missing", "for example --user bragg --secret env:PRISM_PASSWORD")
	case len(t.bmcs) > 0 && len(t.nodes) == 0:
		return console.BadFlag("--bmc needs --node", "name each host with a BMC: --node "+cmp.Or(firstID(t.bmcs), "ahv-1"))
	}
	return nil
}

func firstID(bmcs []string) string {
	id, _, _ := strings.Cut(bmcs[0], "=")
	return id
}

// askNutanix asks for what has no default. The password itself is not among it.
func (t *initTarget) askNutanix(question func(text, byDefault string) (string, error)) error {
	for _, one := range []struct {
		to              *string
		text, byDefault string
	}{
		{&t.endpoint, "Address of Prism Central", ""},
		{&t.user, "User of Prism Central", "admin"},
		{&t.secret, "Location of the password: env:NAME, file:PATH or command:PROGRAM ARGUMENTS", "env:PRISM_PASSWORD"},
	} {
		if *one.to != "" {
			continue
		}
		var err error
		if *one.to, err = question(one.text, one.byDefault); err != nil {
			return err
		}
	}
	if len(t.templates) > 0 {
		return nil
	}
	image, err := question("Image that VMs boot: name in Prism, or the path of a file", "")
	if image != "" {
		t.templates = []string{"ubuntu1604=" + image}
	}
	return err
}
