// Package events reads what a cluster says of its objects, for messages.
package events

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/target/kube/api"
)

// Said is what the cluster says of one object, the latest first.
type Said []corev1.Event

// saidMax bounds how many events a message repeats.
const saidMax = 3

// Of reads the events of an object. Without the right to read them there are none.
func Of(ctx context.Context, c *api.Client, uid string) Said {
	if uid == "" {
		return nil
	}
	list, err := api.List[corev1.Event](ctx, c, api.Events, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + uid})
	if err != nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(e corev1.Event) bool { return string(e.InvolvedObject.UID) != uid })
	slices.SortStableFunc(list, func(a, b corev1.Event) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), eventTime(b).Compare(eventTime(a)))
	})
	return list
}

// weight puts warnings first.
func weight(e corev1.Event) int {
	if e.Type == corev1.EventTypeWarning {
		return 1
	}
	return 0
}

func eventTime(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// Text returns the text of the latest event with one of these reasons; "": none.
func (s Said) Text(reasons ...string) string {
	for _, e := range s {
		if slices.Contains(reasons, e.Reason) {
			return e.Message
		}
	}
	return ""
}

func (s Said) String() string {
	var texts []string
	for _, e := range s {
		text := e.Reason + ": " + api.Words(e.Message)
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		if len(texts) == saidMax {
			break
		}
	}
	if len(texts) == 0 {
		return "the cluster has no event about it"
	}
	return "the cluster says: " + strings.Join(texts, "; ")
}
