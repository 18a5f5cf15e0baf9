package rights

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Job is a run in the cluster. Its bundle is on a volume of its own.
type Job struct {
	Image    string // container image with bragg
	Scenario string
	// Arguments of bragg run beside the scenario, the target and the runs folder.
	Arguments []string
	// Target is the text of the target file. "": one of AgentImage, and of Class, the storage class of disks, which may be "" for the default.
	Target, AgentImage, Class string
	// RunsClass and RunsSize are those of the volume with the runs; "": the default class, 10Gi.
	RunsClass, RunsSize string
}

var (
	imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}$`)
	plainWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)
	// scenario is a name or the path of a folder.
	scenario = regexp.MustCompile(`^[A-Za-z0-9./][A-Za-z0-9._/-]{0,252}$`)
	quantity = regexp.MustCompile(`^[1-9][0-9]{0,8}([KMGTP]i?)?$`)
)

// Bounds of what a manifest holds: a cluster takes about a megabyte.
const (
	argumentsMax     = 200
	argumentBytesMax = 4096
	targetBytesMax   = 256 << 10
	runsSize         = "10Gi"
	// stopSeconds is how long an interrupted run may take to clean up, before the kubelet kills it.
	stopSeconds = 600
)

// faults lists what cannot be in a manifest.
func (j Job) faults() (wrong []string) {
	bad := func(flag, value, want string) {
		wrong = append(wrong, fmt.Sprintf("%s %q: want %s", flag, value, want))
	}
	for _, one := range [][2]string{{"job image", j.Image}, {"agent image", j.AgentImage}} {
		if one[1] != "" && !imageName.MatchString(one[1]) {
			bad(one[0], one[1], "the name of a container image")
		}
	}
	if j.Scenario != "" && !scenario.MatchString(j.Scenario) {
		bad("scenario", j.Scenario, "a name, or the path of a folder in the image")
	}
	for _, one := range [][2]string{{"storage class", j.Class}, {"storage class of runs", j.RunsClass}} {
		if one[1] != "" && !plainWord.MatchString(one[1]) {
			bad(one[0], one[1], "a name")
		}
	}
	if j.RunsSize != "" && !quantity.MatchString(j.RunsSize) {
		bad("size of the volume with runs", j.RunsSize, "a size such as 10Gi")
	}
	if j.Image == "" || j.Scenario == "" || j.AgentImage == "" && j.Target == "" {
		wrong = append(wrong, "a Job needs an image, a scenario, and an agent image or a target file")
	}
	if j.Target != "" && (j.AgentImage != "" || j.Class != "") {
		wrong = append(wrong, "agent image and storage class are in the target file")
	}
	if len(j.Target) > targetBytesMax || !printable(j.Target) {
		wrong = append(wrong, fmt.Sprintf("target file: want at most %d bytes of printable text", targetBytesMax))
	}
	if len(j.Arguments) > argumentsMax {
		wrong = append(wrong, fmt.Sprintf("%d arguments: want at most %d", len(j.Arguments), argumentsMax))
	}
	for _, one := range j.Arguments {
		if len(one) > argumentBytesMax || !printable(one) {
			bad("argument", one, fmt.Sprintf("at most %d bytes of printable text", argumentBytesMax))
		}
	}
	return wrong
}

// printable reports whether a text can be in YAML as it is.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' })
}

// command is that of the container, as a YAML list. A cluster replaces $(NAME) in it, and $$ by one $.
func (j Job) command() string {
	words := append([]string{"bragg", "run", j.Scenario, "--target", "/etc/bragg/target.yml", "--runs", "/runs"}, j.Arguments...)
	for i, word := range words {
		text, _ := json.Marshal(strings.ReplaceAll(word, "$", "$$")) // a string can be encoded
		words[i] = string(text)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// file is the target file of the Job.
func (j Job) file(kind string) string {
	if j.Target != "" {
		return j.Target
	}
	pool := ""
	if j.Class != "" {
		pool = "pool: " + j.Class + "\n"
	}
	return fmt.Sprintf("provider: kubernetes\n%soptions:\n  kind: %s\n  image: %s\n  agents: direct\n", pool, orPod(kind), j.AgentImage)
}

// manifests are the target file, the volume for the runs, and the Job.
func (j Job) manifests(i Install, name string) []string {
	var lines strings.Builder
	for line := range strings.Lines(j.file(i.Kind)) {
		lines.WriteString("    " + line)
	}
	file := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s-target\n  namespace: %s\ndata:\n  target.yml: |2\n%s\n",
		name, i.Namespace, strings.TrimRight(lines.String(), "\n"))
	class, size := "", j.RunsSize
	if j.RunsClass != "" {
		class = "  storageClassName: " + j.RunsClass + "\n"
	}
	if size == "" {
		size = runsSize
	}
	claim := fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: %s-runs
  namespace: %s
spec:
  accessModes: [ReadWriteOnce]
%s  resources:
    requests:
      storage: %s
`, name, i.Namespace, class, size)
	run := fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %[1]s-run
  namespace: %[2]s
spec:
  backoffLimit: 0
  template:
    spec:
      serviceAccountName: %[1]s
      restartPolicy: Never
      terminationGracePeriodSeconds: %[5]d
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch   # else a later Job finds the journals of runs open to the group, and refuses them
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: bragg
          image: %[3]s
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          command: %[4]s
          volumeMounts:
            - {name: target, mountPath: /etc/bragg, readOnly: true}
            - {name: runs, mountPath: /runs}
      volumes:
        - name: target
          configMap: {name: %[1]s-target}
        - name: runs
          persistentVolumeClaim: {claimName: %[1]s-runs}
`, name, i.Namespace, j.Image, j.command(), stopSeconds)
	return []string{file, claim, run}
}
