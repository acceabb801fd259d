package kube

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// configMapFields is the entry of a client that applies a ConfigMap with ten keys.
func configMapFields() *metav1.FieldsV1 {
	var keys strings.Builder
	for i := range 10 {
		fmt.Fprintf(&keys, `,"f:application-%d.yaml":{}`, i)
	}
	return metav1.NewFieldsV1(`{"f:data":{".":{}` + keys.String() + `},"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}},"f:labels":{".":{},"f:app":{}}}}`)
}

// deploymentFields is the entry of a client that applies a Deployment with twenty variables.
func deploymentFields() *metav1.FieldsV1 {
	var env strings.Builder
	for i := range 20 {
		fmt.Fprintf(&env, `,"k:{\"name\":\"VARIABLE_%d\"}":{".":{},"f:name":{},"f:value":{}}`, i)
	}
	return metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}},` +
		`"f:spec":{"f:progressDeadlineSeconds":{},"f:replicas":{},"f:revisionHistoryLimit":{},"f:selector":{},"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{},"f:maxUnavailable":{}},"f:type":{}},` +
		`"f:template":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{".":{}` + env.String() + `},` +
		`"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}}}`)
}

// BenchmarkManagedFields compares the search that every watched object goes through with the
// parser of the API server. It needs no control plane:
//
//	go test -run NONE -bench ManagedFields -benchmem ./internal/adapter/kube
func BenchmarkManagedFields(b *testing.B) {
	for name, c := range map[string]struct {
		entry *metav1.FieldsV1
		path  []string
	}{
		"ConfigMap":  {configMapFields(), []string{"data"}},
		"Deployment": {deploymentFields(), []string{"spec", "template"}},
	} {
		last := c.path[len(c.path)-1]
		b.Run(name+"/search", func(b *testing.B) {
			for b.Loop() {
				if !owns(c.entry.GetRawBytes(), []string{`"f:` + last + `":`}) {
					b.Fatal("the field is not found")
				}
			}
		})
		b.Run(name+"/parse", func(b *testing.B) {
			for b.Loop() {
				if !hasPath(b, c.entry, c.path) {
					b.Fatal("the field is not found")
				}
			}
		})
	}
}

func hasPath(b *testing.B, entry *metav1.FieldsV1, path []string) bool {
	b.Helper()
	fields := &fieldpath.Set{}
	if err := fields.FromJSON(entry.GetRawReader()); err != nil {
		b.Fatal(err)
	}
	for _, name := range path {
		fields = fields.WithPrefix(fieldpath.FieldNameElement(name))
	}
	return !fields.Empty()
}
