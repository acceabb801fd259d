package charts_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAdlerNames are the vectors of the original names.
func TestAdlerNames(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		values string
		want   string
	}{
		"as printed in the walk-through": {values: printedValues, want: "demo-cm-2648648036"},
		"two values and a file": {
			values: `
appName: test-service
configmaps:
  example-cm-1:
    kv_data: {key-1: value-13, key-2: value-2}
    raw_data: {somename: "line 1\nline 2\n"}
`,
			want: "test-service-example-cm-1-4278394167",
		},
		"the same file beside other values": {
			values: `
appName: test-service
configmaps:
  example-cm-2:
    kv_data: {key-3: value-3, key-4: value-4}
    raw_data: {somename: "line 1\nline 2\n"}
`,
			want: "test-service-example-cm-2-3943374092",
		},
		"a port":               {values: `{appName: a, configmaps: {c: {kv_data: {port: "8131"}}}}`, want: "a-c-2456947149"},
		"a port that collides": {values: `{appName: a, configmaps: {c: {kv_data: {port: "8212"}}}}`, want: "a-c-2456947149"},
		// map[kv_data:map[a:1 b:1e+06 c:1.2345678e+07 d:1.5 e:true]]
		"numbers": {values: `{appName: a, configmaps: {c: {kv_data: {a: 1, b: 1000000, c: 12345678, d: 1.5, e: true}}}}`, want: "a-c-339677447"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := only(t, "ConfigMap", c.values, "--set", "revisions.naming=adler32").GetName()
			if got != c.want {
				t.Errorf("the name is %s, want %s", got, c.want)
			}
		})
	}
}

// TestPortsDoNotCollide: the pair that collided has two names now.
func TestPortsDoNotCollide(t *testing.T) {
	t.Parallel()
	found := objects(t, "ConfigMap", `{appName: a, mount: {clashes: last}, configmaps: {c: {kv_data: {port: "8131"}}, d: {kv_data: {port: "8212"}}}}`)
	if suffix(found[0]) == suffix(found[1]) {
		t.Errorf("both end in %s", suffix(found[0]))
	}
}

// TestTheTypeOfASecretIsContent: Kubernetes refuses to change it, so another type
// is another Secret. The default type is the same said or unsaid.
func TestTheTypeOfASecretIsContent(t *testing.T) {
	t.Parallel()
	name := func(more string) string {
		return only(t, "Secret", "{appName: a, secrets: {s: {kv_data: {tls.crt: c, tls.key: k}"+more+"}}}").GetName()
	}
	unsaid, opaque, tls := name(""), name(", type: Opaque"), name(", type: kubernetes.io/tls")
	if unsaid != opaque || unsaid == tls {
		t.Errorf("the names are %s, as Opaque %s, as TLS %s", unsaid, opaque, tls)
	}
}

// suffix is the part of a name that follows the content.
func suffix(o *unstructured.Unstructured) string {
	name := o.GetName()
	return name[strings.LastIndex(name, "-")+1:]
}

// TestMutableObjectsHaveOtherNames: Kubernetes makes no immutable object mutable
// again, so that an upgrade that says so needs new ones.
func TestMutableObjectsHaveOtherNames(t *testing.T) {
	t.Parallel()
	values := "{appName: a, configmaps: {c: {kv_data: {x: y}}}, secrets: {s: {kv_data: {x: y}}}}"
	for _, kind := range []string{"ConfigMap", "Secret"} {
		before, after := objects(t, kind, values)[0], objects(t, kind, values, "--set", "revisions.immutable=false")[0]
		if before.GetName() == after.GetName() {
			t.Errorf("%s %s is to become mutable", kind, after.GetName())
		}
	}
}

// TestNamesChangeIfAndOnlyIfTheFinalDataChanges renders many random ConfigMaps and
// Secrets, with values that reach them through templates, and the same with one
// of those values changed. Over all of them: equal content, equal end of name;
// other content, other end.
func TestNamesChangeIfAndOnlyIfTheFinalDataChanges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("appName: a\nmount: {clashes: last}\n")
	for _, group := range []string{"configmaps", "secrets"} {
		b.WriteString(group + ":\n")
		for i := range 120 {
			fmt.Fprintf(&b, "  k%d: {%s}\n", i, randomContent(random))
		}
	}
	seen := map[string]map[string]string{"ConfigMap": {}, "Secret": {}}
	changed := 0
	var before []string
	for _, tier := range []string{"front", "back"} {
		var names []string
		for _, kind := range []string{"ConfigMap", "Secret"} {
			for _, o := range objects(t, kind, b.String(), "--set", "podLabels.tier="+tier) {
				names = append(names, o.GetName())
				content := fmt.Sprint(finalData(t, o))
				if other, known := seen[kind][suffix(o)]; known && other != content {
					t.Errorf("%s %s stands for %s and for %s", kind, o.GetName(), content, other)
				}
				seen[kind][suffix(o)] = content
			}
		}
		for i, name := range before {
			if names[i] != name {
				changed++
			}
		}
		before = names
	}
	for kind, bySuffix := range seen {
		contents := map[string]string{}
		for suffix, content := range bySuffix {
			if other, known := contents[content]; known {
				t.Errorf("%s: the content %s has the ends %s and %s", kind, content, suffix, other)
			}
			contents[content] = suffix
		}
	}
	if changed == 0 || changed == len(before) {
		t.Errorf("%d of %d names changed with the value; the test proves nothing", changed, len(before))
	}
}

// randomContent is small, so that equal contents come up in different ways: as
// text, as a number, through a template, in kv_data and in raw_data.
func randomContent(random *rand.Rand) string {
	pick := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	kv := pick("", "x: 1", `x: "1"`, "x: 2, y: 1", "x: true", `x: "true"`, "x: 1000000")
	raw := pick("", `z: "1"`, `z: "{{ 1 }}"`, `z: "{{ .Values.podLabels.tier }}"`, `z: "front"`, `z: "front\n"`, `v: "\u0001\u0002"`)
	binary := pick("", "w: AQI=", "w: AQM=")
	if !strings.HasPrefix(raw, "v:") {
		binary = pick(binary, "v: AQI=")
	}
	return fmt.Sprintf("kv_data: {%s}, raw_data: {%s}, binaryData: {%s}", kv, raw, binary)
}

// finalData is what pods would see, in one form for both kinds.
func finalData(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	var all []string
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	binary, _, _ := unstructured.NestedStringMap(o.Object, "binaryData")
	for key, value := range data {
		if o.GetKind() == "Secret" {
			decoded, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				t.Fatal(err)
			}
			value = string(decoded)
		}
		all = append(all, fmt.Sprintf("%s=%q", key, value))
	}
	for key, value := range binary {
		all = append(all, key+" is "+value)
	}
	slices.Sort(all)
	return all
}

// TestSecretSaltHidesContent: with another salt the same Secret has another name.
func TestSecretSaltHidesContent(t *testing.T) {
	t.Parallel()
	const values = `{appName: a, secrets: {s: {kv_data: {password: hunter2}}}, configmaps: {c: {kv_data: {x: y}}}}`
	plain, salted := only(t, "Secret", values), only(t, "Secret", values, "--set", "revisions.secretSalt=pepper")
	if plain.GetName() == salted.GetName() {
		t.Errorf("both are called %s", plain.GetName())
	}
	if a, b := only(t, "ConfigMap", values), only(t, "ConfigMap", values, "--set", "revisions.secretSalt=pepper"); a.GetName() != b.GetName() {
		t.Error("the salt changes names of ConfigMaps, which are no secret")
	}
}
