package playbook

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/verb"
)

// Lacks lists what the target, this machine and the scenario's folder lack for the playbook, one phrase each.
func (p *Playbook) Lacks(v *verb.View) (lacks []string) {
	l := v.Inventory.Logins
	own := slices.ContainsFunc(p.Inventory, func(name string) bool { return name == NodesInventory || name == CVMsInventory })
	groups := slices.ContainsFunc(p.Inventory, func(name string) bool { return name != NodesInventory && name != CVMsInventory })
	switch {
	case l == nil && groups:
		lacks = append(lacks, fmt.Sprintf("VMs with sshd, which the provider %q does not have: use libvirt with a cloud image, or ssh, also for this machine",
			v.Inventory.Provider))
	case l != nil:
		lacks = append(lacks, l.Lacks...)
		for _, g := range v.Scenario.Groups {
			if slices.Contains(p.Inventory, g.Name) && slices.Contains(l.Without, g.Template) {
				lacks = append(lacks, fmt.Sprintf("a cloud image as template %q of group %q: the present one runs no sshd", g.Template, g.Name))
			}
		}
	}
	missing := func(program, why string) {
		if _, err := exec.LookPath(program); err != nil {
			lacks = append(lacks, program+" on this machine "+why)
		}
	}
	missing(ansible, "(package ansible-core)")
	missing("ssh", "(package openssh-client)")
	byPassword := own && (l == nil || !l.Hosts)
	if byPassword && p.Password == "" {
		lacks = append(lacks, fmt.Sprintf("remote_pass for %s, because the target has no login for nodes", textio.JoinAnd(slices.DeleteFunc(slices.Clone(p.Inventory),
			func(name string) bool { return name != NodesInventory && name != CVMsInventory }))))
	}
	if byPassword || l != nil && l.Password {
		missing("sshpass", "(package sshpass), because logins use a password")
	}
	if dir := v.Scenario.Dir; dir != "" {
		if absent := absentFiles(filepath.Join(dir, filepath.Dir(p.Filename)), v.Scenario.Files[p.Filename]); len(absent) > 0 {
			lacks = append(lacks, fmt.Sprintf("%s in the folder of the scenario, which %s copies to the hosts", textio.JoinAnd(absent), p.Filename))
		}
	}
	return lacks
}

// Fault is why ansible would refuse a playbook of that text for its plays, as far as that is certain: an unreadable playbook has none.
func Fault(text string) string {
	var document yaml.Node
	if yaml.Unmarshal([]byte(text), &document) != nil {
		return ""
	}
	plays := &document
	if len(document.Content) > 0 {
		plays = document.Content[0]
	}
	switch {
	case plays.Kind == 0, plays.Tag == "!!null", plays.Kind == yaml.SequenceNode && len(plays.Content) == 0:
		return "has no play"
	case plays.Kind == yaml.MappingNode:
		return "is not a list of plays"
	}
	for i, play := range plays.Content {
		if play.Kind == yaml.MappingNode && !selects(play) {
			return fmt.Sprintf("has no hosts in play %d", i+1)
		}
	}
	return ""
}

// selects is whether a play says where it runs, or stands for another playbook that does.
func selects(play *yaml.Node) bool {
	for i := 0; i+1 < len(play.Content); i += 2 {
		switch value := play.Content[i+1]; strings.TrimPrefix(play.Content[i].Value, "ansible.builtin.") {
		case "import_playbook", "include", "<<":
			return true
		case "hosts":
			return value.Kind == yaml.AliasNode || len(value.Content) > 0 || value.Kind == yaml.ScalarNode && value.Tag != "!!null" && value.Value != ""
		}
	}
	return false
}

// senders are the modules that read a file of this machine, with the folders beside the playbook where ansible looks too.
var senders = map[string]string{"copy": "files", "unarchive": "files", "script": "files", "template": "templates"}

// absentFiles are the files that a playbook sends and that are not in dir, as far as their names are written out. What ansible would refuse is
// left to it: an unreadable playbook has none.
func absentFiles(dir, text string) (absent []string) {
	var document yaml.Node // which may have a key twice: ansible takes the last
	if yaml.Unmarshal([]byte(text), &document) != nil {
		return nil
	}
	var visit func(node *yaml.Node)
	visit = func(node *yaml.Node) {
		for i, inner := range node.Content {
			visit(inner)
			if node.Kind != yaml.MappingNode || i%2 == 0 {
				continue
			}
			module := strings.TrimPrefix(node.Content[i-1].Value, "ansible.builtin.")
			var arguments any
			if beside, ok := senders[module]; ok && inner.Decode(&arguments) == nil {
				if name := source(module, arguments); name != "" && !exists(dir, beside, name) && !slices.Contains(absent, name) {
					absent = append(absent, name)
				}
			}
		}
	}
	visit(&document)
	slices.Sort(absent)
	return absent
}

// source is the file that a task sends; "" if it is not known before the run or is not on this machine.
func source(module string, arguments any) string {
	name := ""
	switch a := arguments.(type) {
	case string:
		words := strings.Fields(a)
		if module == "script" && len(words) > 0 && !strings.Contains(words[0], "=") {
			name = words[0]
		}
		for _, w := range words {
			if value, ok := strings.CutPrefix(w, "src="); ok {
				name = strings.Trim(value, `"'`)
			}
			if remote, ok := strings.CutPrefix(strings.ToLower(w), "remote_src="); ok && (remote == "yes" || remote == "true") {
				return ""
			}
		}
	case map[string]any:
		if remote, _ := a["remote_src"].(bool); remote || a["remote_src"] == "yes" {
			return ""
		}
		name, _ = a["src"].(string)
		if command, ok := a["cmd"].(string); ok && name == "" && module == "script" {
			name, _, _ = strings.Cut(command, " ")
		}
	}
	if strings.Contains(name, "{{") || strings.Contains(name, "://") || filepath.IsAbs(name) || strings.HasPrefix(name, "~") {
		return ""
	}
	return strings.TrimPrefix(name, "./")
}

func exists(dir, beside, name string) bool {
	for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, beside, name)} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}
