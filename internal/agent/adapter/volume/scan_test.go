package volume_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const patience = time.Minute

func keys(o filemap.Object) []string {
	var got []string
	for _, e := range o.Entries {
		got = append(got, e.Key)
	}
	sort.Strings(got)
	return got
}

// The kubelet's layout and plain directories must read the same.
func TestScan(t *testing.T) {
	plain := t.TempDir()
	mkdir(t, filepath.Join(plain, "sub"))
	write(t, filepath.Join(plain, "a"), "1")
	write(t, filepath.Join(plain, "sub", "b"), "2")

	mounted := t.TempDir()
	mkdir(t, filepath.Join(mounted, "..2026_11_15"))
	mkdir(t, filepath.Join(mounted, "..2026_11_15", "sub"))
	write(t, filepath.Join(mounted, "..2026_11_15", "a"), "1")
	write(t, filepath.Join(mounted, "..2026_11_15", "sub", "b"), "2")
	mustLink(t, "..2026_11_15", filepath.Join(mounted, "..data"))
	mustLink(t, "..data/a", filepath.Join(mounted, "a"))
	mustLink(t, "..data/sub", filepath.Join(mounted, "sub"))

	for name, dir := range map[string]string{"plain": plain, "mounted": mounted} {
		t.Run(name, func(t *testing.T) {
			got, changed, err := volume.NewDirectory(dir, volume.HashOnly{}).Scan()
			if err != nil || !changed {
				t.Fatalf("changed %v, error %v", changed, err)
			}
			if diff := cmp.Diff([]string{"a", "sub/b"}, keys(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// countingKeeper tells how often contents were read.
type countingKeeper struct {
	volume.HashOnly

	reads int
}

func (c *countingKeeper) KeepFrom(r io.Reader) (filemap.Digest, error) {
	c.reads++
	return c.HashOnly.KeepFrom(r)
}

// scanAgain scans and says whether that found a change.
func scanAgain(t *testing.T, d *volume.Directory) bool {
	t.Helper()
	_, changed, err := d.Scan()
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// A file that has just changed is read again until it is quiet, and then no
// more. Reading it again is no change.
func TestScanReadsOnlyWhenSomethingDiffers(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "1")
	keeper := &countingKeeper{}
	d := volume.NewDirectory(dir, keeper)
	if !scanAgain(t, d) {
		t.Error("the first scan is no change")
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		before := keeper.reads
		if scanAgain(t, d) {
			t.Error("a file that did not change has changed")
		}
		return keeper.reads == before, fmt.Sprintf("each scan still reads the file: %d reads so far", keeper.reads)
	})
	quiet := keeper.reads
	for range 3 {
		scanAgain(t, d)
	}
	if keeper.reads != quiet {
		t.Errorf("a quiet file was read %d times more", keeper.reads-quiet)
	}
	write(t, filepath.Join(dir, "a"), "22")
	got, changed, err := d.Scan()
	if err != nil || !changed || keeper.reads != quiet+1 || got.Entries[0].Size != 2 {
		t.Errorf("after a change: changed %v, reads %d, %+v, error %v", changed, keeper.reads-quiet, got.Entries, err)
	}
}

// Two changes within one tick of the file system's clock look the same from
// outside. A file system in memory of the old kind has a slow clock.
func TestScanNoticesASecondChangeInTheSameTick(t *testing.T) {
	needsRoot(t)
	dir := t.TempDir()
	inMountNamespace(t, func() {
		if err := unix.Mount("none", dir, "ramfs", 0, ""); err != nil {
			t.Error(err)
			return
		}
		d := volume.NewDirectory(dir, volume.HashOnly{})
		for n := range 500 {
			write(t, filepath.Join(dir, "a"), strconv.Itoa(1000+n))
			if !scanAgain(t, d) {
				t.Errorf("change %d was not noticed", n)
				return
			}
		}
	})
}

// A link that leads nowhere is left out: an editor's lock, a target that comes
// later.
func TestScanLeavesOutLinksThatLeadNowhere(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.conf"), "1")
	mustLink(t, "me@host.123:456", filepath.Join(dir, ".#app.conf"))
	mustLink(t, "later", filepath.Join(dir, "b"))
	d := volume.NewDirectory(dir, volume.HashOnly{})
	got, _, err := d.Scan()
	if diff := cmp.Diff([]string{"app.conf"}, keys(got)); err != nil || diff != "" {
		t.Errorf("error %v\n%s", err, diff)
	}
	write(t, filepath.Join(dir, "later"), "2")
	got, _, err = d.Scan()
	if diff := cmp.Diff([]string{"app.conf", "b", "later"}, keys(got)); err != nil || diff != "" {
		t.Errorf("error %v\n%s", err, diff)
	}
}

// After a failure the caller is told what there is, although nothing changed.
func TestScanTellsWhenItRecovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	mkdir(t, dir)
	write(t, filepath.Join(dir, "a"), "1")
	d := volume.NewDirectory(dir, volume.HashOnly{})
	scanAgain(t, d)
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Scan(); err == nil {
		t.Error("a directory that is away was read")
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	if !scanAgain(t, d) {
		t.Error("the caller still believes that it cannot be read")
	}
}

// A change in place that keeps size and modification time shows all the same.
func TestScanNoticesWhatTimesHide(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	write(t, name, "1")
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(name, then, then); err != nil {
		t.Fatal(err)
	}
	d := volume.NewDirectory(dir, volume.HashOnly{})
	if _, _, err := d.Scan(); err != nil {
		t.Fatal(err)
	}
	write(t, name, "2")
	if err := os.Chtimes(name, then, then); err != nil {
		t.Fatal(err)
	}
	if _, changed, err := d.Scan(); err != nil || !changed {
		t.Errorf("changed %v, error %v", changed, err)
	}
}

// breakingKeeper fails at the second file and counts what is held.
type breakingKeeper struct {
	volume.HashOnly

	reads, held int
}

func (b *breakingKeeper) KeepFrom(r io.Reader) (filemap.Digest, error) {
	if b.reads++; b.reads == 2 {
		return filemap.Digest{}, errors.New("no space left")
	}
	b.held++
	return b.HashOnly.KeepFrom(r)
}

func (b *breakingKeeper) Unpin(entries []filemap.Entry) { b.held -= len(entries) }

func TestAFailedScanHoldsNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "1")
	write(t, filepath.Join(dir, "b"), "2")
	keeper := &breakingKeeper{}
	if _, _, err := volume.NewDirectory(dir, keeper).Scan(); err == nil || keeper.held != 0 {
		t.Errorf("error %v, %d values are held", err, keeper.held)
	}
}

func TestScanDoesNotFollowLinksOutOfTheDirectory(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "x")
	dir := t.TempDir()
	mustLink(t, filepath.Join(outside, "secret"), filepath.Join(dir, "a"))
	if got, _, err := volume.NewDirectory(dir, volume.HashOnly{}).Scan(); err == nil || len(got.Entries) != 0 {
		t.Errorf("read %v, error %v", keys(got), err)
	}
}

func mkdir(t *testing.T, name string) {
	t.Helper()
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
}

// A directory beyond the limit is not read at all, and is read as soon as it fits: when its
// files are smaller, or when others make room.
func TestScanStopsAtTheLimit(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "1")
	if err := os.Truncate(filepath.Join(dir, "a"), 16<<20); err != nil { // sparse
		t.Fatal(err)
	}
	keeper, room := &countingKeeper{}, true
	d := volume.NewDirectory(dir, keeper)
	d.Limit(1<<20, func(filemap.Ref, int64) bool { return room })
	omitted := func(why string, wantChange bool) {
		t.Helper()
		got, changed, err := d.Scan()
		if err != nil || changed != wantChange || keeper.reads != 0 || got.Omitted == 0 || len(got.Entries) > 0 {
			t.Errorf("%s: changed %v, %d reads, %+v, error %v", why, changed, keeper.reads, got, err)
		}
	}
	omitted("one large file", true)
	omitted("still there", false)
	if err := os.Truncate(filepath.Join(dir, "a"), 1); err != nil {
		t.Fatal(err)
	}
	for i := range 300 { // each of them takes a block
		write(t, filepath.Join(dir, strconv.Itoa(i)), "")
	}
	omitted("many empty files", true)
	for i := range 299 {
		if err := os.Remove(filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	room = false
	omitted("others need the room", true)
	room = true
	got, changed, err := d.Scan()
	if err != nil || !changed || got.Omitted != 0 || len(got.Entries) != 2 {
		t.Errorf("now it fits: changed %v, %+v, error %v", changed, got, err)
	}
}

// endless grows while it is read.
type endless struct{ name string }

func (e endless) KeepFrom(r io.Reader) (filemap.Digest, error) {
	buffer := make([]byte, 1024)
	for range 100 {
		if n, _ := r.Read(buffer); n == 0 {
			return filemap.Digest{}, nil
		}
		f, err := os.OpenFile(e.name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return filemap.Digest{}, err
		}
		_, err = f.Write(buffer)
		if err := errors.Join(err, f.Close()); err != nil {
			return filemap.Digest{}, err
		}
	}
	return filemap.Digest{}, errors.New("the file has no end")
}

func (endless) Unpin([]filemap.Entry) {}

// A file that is written to as fast as it is read ends where it ended when it was opened.
func TestScanOfAFileThatGrows(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "log"), "first line")
	if _, _, err := volume.NewDirectory(dir, endless{filepath.Join(dir, "log")}).Scan(); err != nil {
		t.Error(err)
	}
}
