package kube

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/kube/object"
	"github.com/braggdev/bragg/internal/target/kube/rights"
	"github.com/braggdev/bragg/internal/target/kube/virt"
)

// settings are what a target file says to this provider, with defaults filled in.
type settings struct {
	kind          string // of VMs: rights.KindPod, KindKubeVirt
	class         string // storage class; "": the cluster's default
	image         string // of agents, for templates that name none
	snapshotClass string
	agents        string
	patience      time.Duration // how long the cluster may take for one thing
	access        corev1.PersistentVolumeAccessMode
	virt          virt.Settings
	pods          object.Settings
}

// The cluster may need minutes: to pull an image, to make a volume, to add a node.
const (
	patience      = 10 * time.Minute
	patienceLeast = time.Second
)

const (
	agentsAuto    = "auto"
	agentsDirect  = "direct"
	agentsForward = "port-forward"

	modeFilesystem = "filesystem"
	modeBlock      = "block"
	plainUser      = 65532 // as images without a shell call nonroot
)

// choices are the options of the target file and their values, the default first.
var choices = map[string][]string{
	"kind":              rights.Kinds(),
	"volume_mode":       {modeFilesystem, modeBlock},
	"agents":            {agentsAuto, agentsDirect, agentsForward},
	"image_pull_policy": {string(corev1.PullIfNotPresent), string(corev1.PullAlways), string(corev1.PullNever)},
	"reserve":           {"on", "off"},
}

// texts are the options that are free text.
var texts = []string{"context", "image", "image_pull_secret", "kubeconfig", "namespace", "node_selector", "patience", "run_as_user", "snapshot_class", "tolerations"}

func readSettings(c target.Config) (settings, error) {
	all := maps.Clone(choices)
	maps.Copy(all, virt.Choices)
	value, list := c.ReadOptions(all, slices.Concat(texts, virt.Texts)...)
	place := diag.Position{File: c.File}
	s := settings{
		kind: value["kind"], class: c.Pool, image: value["image"], snapshotClass: value["snapshot_class"], agents: value["agents"], patience: patience,
		access: corev1.ReadWriteOnce,
		pods: object.Settings{
			PullSecret: value["image_pull_secret"], PullPolicy: corev1.PullPolicy(value["image_pull_policy"]), Block: value["volume_mode"] == modeBlock,
			Reserve: value["reserve"] == "on", User: plainUser,
		},
	}
	if s.pods.Block {
		s.pods.User = object.RootUser // containers get block devices as root's
	}
	if text := value["run_as_user"]; text != "" {
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil || id < 0 {
			list.Errorf(place, "target-option", "option run_as_user is %q, want a number of a user", text)
		}
		s.pods.User = id
	}
	if text := value["patience"]; text != "" {
		given, err := time.ParseDuration(text)
		if err != nil || given < patienceLeast {
			list.Errorf(place, "target-option", "option patience is %q, want a duration of at least %s", text, patienceLeast)
		}
		s.patience = given
	}
	var err error
	if s.pods.Selector, err = readSelector(value["node_selector"]); err != nil {
		list.Errorf(place, "target-option", "option node_selector: %v", err)
	}
	if s.pods.Tolerations, err = readTolerations(value["tolerations"]); err != nil {
		list.Errorf(place, "target-option", "option tolerations: %v", err)
	}
	if s.image == "" && len(c.Templates) == 0 {
		list.Add(diag.Diagnostic{
			Code: "target-option", Pos: place, Message: "option image is missing: the container image of the agent, or with kind kubevirt the image that VMs boot",
			Hint: "bragg kube image writes it as an archive; push it, and write options: {image: REGISTRY/bragg-agent:TAG}",
		})
	}
	if s.kind == rights.KindKubeVirt {
		s.readVirt(c, value, &list)
		return s, list.Err()
	}
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		if virt.Choices[name] != nil || slices.Contains(virt.Texts, name) {
			list.Errorf(place, "target-option", "option %s is for kind kubevirt", name)
		}
	}
	return s, list.Err()
}

// readVirt reads what is different with VMs of KubeVirt.
func (s *settings) readVirt(c target.Config, value map[string]string, list *diag.List) {
	place := diag.Position{File: c.File}
	var faults []error
	s.virt, faults = virt.Read(value)
	for _, err := range faults {
		list.Errorf(place, "target-option", "%v", err)
	}
	s.access, s.pods.Block = s.virt.Access, true
	if c.Options["volume_mode"] == modeFilesystem {
		list.Errorf(place, "target-option", "option volume_mode is filesystem: disks of VMs of KubeVirt are block volumes, because its files in file systems have other sizes")
	}
	if c.Options["run_as_user"] != "" {
		list.Errorf(place, "target-option", "option run_as_user is for kind pod")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Templates)) {
		if !virt.ReadBoot(c.Templates[name]).Is() {
			list.Errorf(place, "target-template", "template %q is %q, want a container image, kernel:IMAGE or pvc:NAME", name, c.Templates[name])
		}
	}
}

// readSelector reads "disk=nvme,zone=a".
func readSelector(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	all := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q: want label=value", part)
		}
		all[key] = value
	}
	return all, nil
}

var tolerationText = regexp.MustCompile(`^([A-Za-z0-9./_-]+)(?:=([A-Za-z0-9._-]*))?(?::(NoSchedule|PreferNoSchedule|NoExecute))?$`)

// readTolerations reads "dedicated=bench:NoSchedule,node-role.kubernetes.io/control-plane".
func readTolerations(text string) ([]corev1.Toleration, error) {
	if text == "" {
		return nil, nil
	}
	var all []corev1.Toleration
	for part := range strings.SplitSeq(text, ",") {
		m := tolerationText.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return nil, fmt.Errorf("%q: want key, key=value or key=value:NoSchedule", part)
		}
		one := corev1.Toleration{Key: m[1], Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(m[3])}
		if strings.Contains(part, "=") {
			one.Operator, one.Value = corev1.TolerationOpEqual, m[2]
		}
		all = append(all, one)
	}
	return all, nil
}
