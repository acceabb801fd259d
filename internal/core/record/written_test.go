package record_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// every is an entry with every field set, and with fields and inputs of a newer program.
func every() record.Entry {
	e := full()
	e.Inputs[input.ConfigMap("every")] = record.Delivered{
		Version: version(sum), Shown: input.Tracked(sum[:10]), From: "6@web-5f8c", Was: "77ab01c9de", Due: "3fa9c1d2e4", RevertedTo: "web-5f8c",
		Awaits: true, Sealed: true, Trial: "3fa9c1d2", Mixed: true, Memo: "spec=1;bad=2", Rest: "new:1 words",
	}
	e.Eviction.For, e.Eviction.Since = "configmap/app~0123456789", time.Date(2026, 11, 15, 3, 4, 7, 0, time.UTC)
	e.Foreign = record.Foreign{
		Inputs: map[string]json.RawMessage{
			"volume/data": json.RawMessage(`{ "at" : "<1>" }`), "a/first": json.RawMessage(`[1 , 2]`),
			"configmap/app": json.RawMessage(`"another form, which ours replaces"`), "x/<&>": json.RawMessage(`null`),
		},
		Fields: map[string]json.RawMessage{"zebra": json.RawMessage(`{"b": 1,"a":2}`), "Moved": json.RawMessage(`"yesterday"`), "<odd>": json.RawMessage("1.50")},
	}
	return e
}

// entries are what testdata/written.json has as the program writes it.
func entries() map[string]record.Entry {
	ours, rest, east := every(), every(), every()
	ours.Foreign = record.Foreign{}
	rest.Inputs, rest.Foreign.Fields = nil, nil
	for _, at := range []*time.Time{&east.PendingSince, &east.DelaySince, &east.RolledOutAt, &east.AsOf, &east.GoneAt, &east.Eviction.Since} {
		*at = at.Add(123456 * time.Microsecond).In(time.FixedZone("east", 3*3600+1800))
	}
	const odd = "\"quoted\" <&> \\ \t\x01\x7f ü \u2028 \xff …"
	return map[string]record.Entry{
		"Empty":       {},
		"Known":       {ID: "Deployment.apps/shop/web", UID: "4711", Inputs: map[input.ID]record.Delivered{input.Secret("db"): {Version: version("absent")}}},
		"Full":        full(),
		"Every":       every(),
		"EveryOurs":   ours,
		"OnlyForeign": rest,
		"East":        east,
		"Odd": {
			ID: odd, UID: odd, Hold: record.Hold{On: true, By: odd}, Presence: record.Presence{Inherited: odd}, Eviction: record.Eviction{For: odd}, Searched: []string{odd, ""}, Coverage: record.Coverage{Template: record.Template{Sum: odd}},
			Decision: record.Decision{Message: odd}, Inputs: map[input.ID]record.Delivered{input.Secret(odd): {Version: version(odd), Memo: odd}},
		},
		"Escapes": {
			ID: "<", UID: ">", Coverage: record.Coverage{Template: record.Template{Sum: "&"}}, Presence: record.Presence{Inherited: `"`}, Eviction: record.Eviction{For: `\\`},
			Inputs: map[input.ID]record.Delivered{input.Secret("\x1f"): {Version: version("~")}, input.Secret("\x7f"): {Version: version("\u2028")}, input.Secret("ü"): {Version: version("\xff")}},
		},
		"Numbers":  {Coverage: record.Coverage{Accounted: 1<<63 - 1, Template: record.Template{Generation: -5, Sum: "x"}}, Released: 1<<63 - 1, Eviction: record.Eviction{Pods: -3}},
		"Hold":     {Hold: record.Hold{On: true}},
		"NoHold":   {Hold: record.Hold{By: "nobody", Undone: true}},
		"Nothing":  {Inputs: map[input.ID]record.Delivered{}, Searched: []string{}, Foreign: record.Foreign{Inputs: map[string]json.RawMessage{}, Fields: map[string]json.RawMessage{}}},
		"Decision": {Decision: record.Decision{Since: time.Date(2026, 11, 15, 3, 4, 5, 6, time.FixedZone("west", -3600))}},
		"Notes": {Inputs: map[input.ID]record.Delivered{
			input.Secret("version"): {Version: version(sum)},
			input.Secret("shown"):   {Version: version(sum), Shown: input.Tracked("12")},
			input.Secret("empty"):   {Version: version(sum), Shown: input.Mark{Pinned: true}},
			input.Secret("from"):    {Version: version(sum), From: "6"},
			input.Secret("was"):     {Version: version(sum), Was: "12"},
			input.Secret("due"):     {Version: version(sum), Due: "12", Shown: input.Tracked("12")},
			input.Secret("back"):    {Version: version(sum), RevertedTo: "web-1"},
			input.Secret("awaits"):  {Version: version(sum), Awaits: true},
			input.Secret("sealed"):  {Version: version(sum), Sealed: true, Shown: input.Mark{Digest: "12", Pinned: true}},
			input.Secret("mixed"):   {Version: version(sum), Mixed: true},
			input.Secret("trial"):   {Version: version(sum), Trial: "12"},
			input.Image("memo"):     {Version: fingerprint.Version{Basis: "sha256", Sum: "absent"}, Memo: "a=1"},
			input.Image("rest"):     {Version: fingerprint.Version{Basis: "sha256", Sum: "absent"}, Rest: "a b  c"},
		}},
	}
}

// texts are what the program reads, and testdata/written.json has what it then writes.
func texts() map[string]string {
	const known = `"1:*:` + sum + ` 0123456789 from:6`
	return map[string]string{
		"ReadSpaces":  ` { "v" : 2 , "uid" : "b" , "id" : "a" , "new" : [ 1 , 2 ] , "in" : { "secret/db" : ` + known + `" } } `,
		"ReadNulls":   `{"v":2,"id":null,"uid":null,"in":null,"pending":null,"accounted":null,"template":null,"hold":null,"searched":null,"left":null,"decision":null,"evictPods":null}`,
		"ReadEmpty":   `{"v":2,"id":"","in":{},"template":"","hold":{},"searched":[],"left":false,"decision":{},"evictFor":"","pending":"0001-01-01T00:00:00Z"}`,
		"ReadTwice":   `{"v":2,"id":"a","id":"b","in":{"secret/a":"1:*:absent"},"in":{"secret/b":"1:*:absent"}}`,
		"ReadCase":    `{"v":2,"ID":"a","In":{},"Hold":1,"V":3}`,
		"ReadEscapes": `{"v":2,"id":"\u003ca\u003e \"\\ \ud800","uid":"<b>","in":{"secret/\u0064b":"1:*:absent ~ memo:\u0026","secret/x":"1:*:absent \u007e"}}`,
		"ReadBytes":   "{\"v\":2,\"id\":\"\xff\",\"inherited\":\"\x7f ü\"}",
		"ReadWords":   `{"v":2,"in":{"secret/a":` + known + ` new:1 awaits mixed x sealed due: was:1 was:2  memo:m"}}`,
		"ReadMarks":   `{"v":2,"in":{"secret/a":"1:*:absent =","secret/b":"1:*:absent ~","secret/c":"1:*:absent ~12","secret/d":"1:*:absent  from:1","secret/e":"1:*:absent 12 "}}`,
		"ReadForeign": `{"v":2,"in":{"secret/a":"9:new:form","secret/b":{"sum": 1},"secret/c":null,"Secret/d":"1:*:absent","secret/e/f":"1:*:absent","volume/g":"1:*:absent","secret/h":7},"b":"<","a":null}`,
		"ReadShapes":  `{"v":2,"template":"no number:1:x","released":12,"hold":{"by":"x","new":1},"decision":{"reason":"Held","new":1}}`,
		"ReadTimes":   `{"v":2,"pending":"2026-11-15T03:04:05.5+03:30","moved":"2026-11-15T03:04:05Z"}`,
	}
}

// TestWritten: as long as the format stays, every program writes the same bytes for the same
// entry, so an upgrade and a rollback restart nothing.
func TestWritten(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/written.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, e := range entries() {
		got[name] = encode(t, e)
	}
	for name, text := range texts() {
		e, err := record.Decode(text)
		if err != nil {
			t.Errorf("%s is refused: %v", text, err)
			continue
		}
		got[name] = encode(t, e)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the written form changed (-want +got)\n%s", diff)
	}
}

func encode(t *testing.T, e record.Entry) string {
	t.Helper()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestEveryFieldIsWritten: a field that is in no table would be lost with the process. Each is
// written, is read back, tells two entries apart, and is not shared with a clone.
func TestEveryFieldIsWritten(t *testing.T) {
	t.Parallel()
	empty := record.Entry{ID: "a", UID: "b"}.Clone()
	unstored := reflect.TypeFor[record.Unstored]()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[record.Entry]()) {
		if _, skip := unstored.FieldByName(field.Name); skip || field.Anonymous {
			continue // not stored, or its own fields are looked at
		}
		e := empty.Clone()
		fill(t, reflect.ValueOf(&e).Elem().FieldByIndex(field.Index))
		checkWritten(t, field.Name, e, empty)
	}
	for field := range reflect.TypeFor[record.Delivered]().Fields() {
		plain, e := empty.Clone(), empty.Clone()
		given := record.Delivered{Version: version("absent")}
		plain.Inputs[input.Secret("db")] = given
		if field.Name == "Version" {
			given.Version = version(sum)
		} else {
			fill(t, reflect.ValueOf(&given).Elem().FieldByIndex(field.Index))
		}
		e.Inputs[input.Secret("db")] = given
		checkWritten(t, "Given."+field.Name, e, plain)
	}
}

func checkWritten(t *testing.T, name string, e, without record.Entry) {
	t.Helper()
	text := encode(t, e)
	got, err := record.Decode(text)
	if err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("%s is written as %s, which reads otherwise: %v\n%s", name, text, err, cmp.Diff(e, got))
	}
	if !got.Equal(e) || e.Equal(without) || without.Equal(e) {
		t.Errorf("%s: equal to itself %t, to an entry without it %t", name, got.Equal(e), e.Equal(without))
	}
	if shared(reflect.ValueOf(e), reflect.ValueOf(e.Clone())) {
		t.Errorf("%s is shared with a clone", name)
	}
}

// fill sets a value that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Date(2026, 11, 15, 3, 4, 5, 0, time.UTC)
		return
	case *json.RawMessage:
		*at = json.RawMessage(`{"x": 1}`)
		return
	case *map[input.ID]record.Delivered:
		*at = map[input.ID]record.Delivered{input.Secret("db"): {Version: version("absent")}}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(t, element)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), element)
	case reflect.Struct:
		for _, part := range v.Fields() {
			fill(t, part)
		}
	default:
		t.Fatalf("no value for a %s", v.Type())
	}
}

// shared reports whether two structs have a map or a slice in common.
func shared(a, b reflect.Value) bool {
	for i := range a.NumField() {
		a, b := a.Field(i), b.Field(i)
		kind := a.Kind()
		if (kind == reflect.Map || kind == reflect.Slice) && a.Len() > 0 && a.UnsafePointer() == b.UnsafePointer() {
			return true
		}
		if kind == reflect.Struct && a.Type() != reflect.TypeFor[time.Time]() && shared(a, b) {
			return true
		}
	}
	return false
}
