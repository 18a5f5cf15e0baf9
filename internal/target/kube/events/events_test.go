package events

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// An image that cannot be pulled is explained once, and not by the state of the container and its events in turn.
func TestBeyond(t *testing.T) {
	why := `ImagePullBackOff: Back-off pulling image "r.example/agent:9": ErrImagePull: failed to pull and unpack image "r.example/agent:9": dial tcp: ` +
		`lookup r.example on 10.0.0.53:53: read udp 10.0.0.1:33244->10.0.0.53:53: i/o timeout`
	said := Said{
		{Reason: "Scheduled", Type: corev1.EventTypeNormal, Message: "Successfully assigned bench/agent to node-1"},
		{Reason: "Failed", Message: "Error: ImagePullBackOff"},
		{Reason: "Failed", Message: `Failed to pull image "r.example/agent:9": failed to pull and unpack image "r.example/agent:9": dial tcp: ` +
			`lookup r.example on 10.0.0.53:53: read udp 10.0.0.1:41895->10.0.0.53:53: i/o timeout`},
		{Reason: "Failed", Message: "Error: ErrImagePull"},
	}
	if got := said.Beyond(why); got != "" {
		t.Errorf("repeated: %s", got)
	}
	said = append(said, corev1.Event{Reason: "FailedMount", Message: `secret "agent" not found`})
	if got, want := said.Beyond(why), `the cluster says: FailedMount: secret "agent" not found`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := said.Beyond(`ImagePullBackOff: Back-off pulling image "r.example/agent:9"`), `the cluster says: Failed: Failed to pull image "r.example/agent:9": `; len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("an older kubelet names the cause in events only, got %s", got)
	}
}
