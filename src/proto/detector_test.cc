#include "proto/detector.h"

#include <gtest/gtest.h>

namespace hawser::proto {
namespace {

using Kind = DetectorAction::Kind;

Instant at(std::int64_t ms) { return Instant::from_ns(ms * 1000000); }
constexpr Duration ms(std::int64_t count) { return std::chrono::milliseconds(count); }

/// Three intervals of silence, and the peer has failed; `patience` gives it more.
DetectorOptions options() {
  return {.interval = ms(100), .missed = 3, .patience = Duration::zero(), .idle_factor = 8, .judged = true};
}
DetectorOptions patient_options() {
  DetectorOptions all = options();
  all.patience = ms(5000);
  return all;
}

TEST(Detector, ASilentBusyPeerFailsAfterThreeIntervals) {
  Detector detector(options(), at(0));
  detector.set_busy(true, at(0));
  EXPECT_EQ(detector.next_timeout(), at(100));
  EXPECT_EQ(detector.poll(at(99)).kind, Kind::kNone);
  const DetectorAction first = detector.poll(at(100));
  EXPECT_EQ(first.kind, Kind::kSendPing);
  EXPECT_EQ(first.nonce, 1u);
  EXPECT_FALSE(detector.suspect());
  EXPECT_EQ(detector.poll(at(150)).kind, Kind::kNone);
  EXPECT_EQ(detector.poll(at(200)).nonce, 2u);
  EXPECT_FALSE(detector.suspect());
  const DetectorAction last = detector.poll(at(300));
  EXPECT_EQ(last.kind, Kind::kFailed);
  EXPECT_EQ(last.silent, ms(300));
  EXPECT_EQ(detector.next_timeout(), Instant::max());
  EXPECT_EQ(detector.poll(at(900)).kind, Kind::kNone);
  EXPECT_FALSE(detector.on_heard(at(901)));  // failed is final
  EXPECT_EQ(detector.next_timeout(), Instant::max());
}

TEST(Detector, ABusyConnectionSendsNoPings) {
  Detector detector(options(), at(0));
  detector.set_busy(true, at(0));
  for (int now = 0; now < 10000; now += 50) {
    EXPECT_FALSE(detector.on_heard(at(now)));
    EXPECT_EQ(detector.poll(at(now)).kind, Kind::kNone);
  }
}

TEST(Detector, AnyAnswerEndsTheSuspicion) {
  Detector detector(patient_options(), at(0));
  detector.set_busy(true, at(0));
  detector.poll(at(100));
  detector.poll(at(200));
  const DetectorAction third = detector.poll(at(300));
  EXPECT_EQ(third.kind, Kind::kSuspect);
  EXPECT_EQ(third.nonce, 3u) << "it is asked once more";
  EXPECT_EQ(third.silent, ms(300));
  EXPECT_TRUE(detector.suspect());
  EXPECT_EQ(detector.poll(at(400)).kind, Kind::kSendPing) << "it is suspected once";
  EXPECT_TRUE(detector.on_heard(at(499)));
  EXPECT_FALSE(detector.suspect());
  EXPECT_FALSE(detector.on_heard(at(499)));
  EXPECT_EQ(detector.next_timeout(), at(599));
  EXPECT_EQ(detector.poll(at(500)).kind, Kind::kNone);
  for (const int now : {599, 699}) EXPECT_EQ(detector.poll(at(now)).kind, Kind::kSendPing);
  EXPECT_EQ(detector.poll(at(799)).kind, Kind::kSuspect) << "another silence";
}

TEST(Detector, ASuspectFailsOnceItsTimeIsOver) {
  for (const int patience : {750, 800}) {  // In whole intervals.
    DetectorOptions patient = options();
    patient.patience = ms(patience);
    Detector detector(patient, at(0));
    detector.set_busy(true, at(0));
    for (int now = 100; now < 800; now += 100) {
      EXPECT_EQ(detector.poll(at(now)).kind, now == 300 ? Kind::kSuspect : Kind::kSendPing) << now;
    }
    const DetectorAction last = detector.poll(at(800));
    EXPECT_EQ(last.kind, Kind::kFailed);
    EXPECT_EQ(last.silent, ms(800));
    EXPECT_EQ(detector.next_timeout(), Instant::max());
  }
}

TEST(Detector, AnIdleSuspectFailsAfterItsFirstIntervalAndTheRestOfItsTime) {
  DetectorOptions patient = options();
  patient.patience = ms(1000);
  Detector detector(patient, at(0));
  EXPECT_EQ(detector.poll(at(800)).kind, Kind::kSendPing);
  EXPECT_EQ(detector.poll(at(900)).kind, Kind::kSendPing);
  EXPECT_EQ(detector.poll(at(1000)).kind, Kind::kSuspect);
  for (int now = 1100; now < 1700; now += 100) EXPECT_EQ(detector.poll(at(now)).kind, Kind::kSendPing) << now;
  EXPECT_EQ(detector.poll(at(1700)).kind, Kind::kFailed);
}

TEST(Detector, RoundTripsAreMeasuredForTheLastPing) {
  Detector detector(options(), at(0));
  detector.set_busy(true, at(0));
  EXPECT_FALSE(detector.on_pong(0, at(1)));
  const std::uint64_t first = detector.poll(at(100)).nonce;
  EXPECT_EQ(detector.on_pong(first, at(107)), ms(7));
  detector.poll(at(200));
  EXPECT_FALSE(detector.on_pong(first, at(207)));
}

TEST(Detector, AnIdlePeerIsAskedSeldomButJudgedQuickly) {
  Detector detector(options(), at(0));
  EXPECT_EQ(detector.next_timeout(), at(800));
  EXPECT_EQ(detector.poll(at(800)).kind, Kind::kSendPing);
  EXPECT_EQ(detector.next_timeout(), at(900));
  EXPECT_EQ(detector.poll(at(900)).kind, Kind::kSendPing);
  EXPECT_EQ(detector.poll(at(1000)).kind, Kind::kFailed);
}

TEST(Detector, BusyAndIdleChangeThePace) {
  Detector detector(options(), at(0));
  detector.set_busy(true, at(50));
  EXPECT_EQ(detector.next_timeout(), at(150));
  detector.set_busy(true, at(90));
  EXPECT_EQ(detector.next_timeout(), at(150));
  detector.set_busy(false, at(100));
  EXPECT_EQ(detector.next_timeout(), at(800));
  detector.set_busy(true, at(790));
  EXPECT_EQ(detector.next_timeout(), at(800));
  detector.poll(at(800));
  detector.set_busy(false, at(810));  // a ping is out: its interval stays
  EXPECT_EQ(detector.next_timeout(), at(900));
}

TEST(Detector, TheFirstPingOfAnIdlePeerMayComeAnIntervalEarlier) {
  Detector detector(options(), at(0));
  EXPECT_FALSE(detector.hasten(at(699)));
  EXPECT_TRUE(detector.hasten(at(700)));
  EXPECT_EQ(detector.next_timeout(), at(700));
  EXPECT_FALSE(detector.hasten(at(700))) << "it is due already";
  EXPECT_EQ(detector.poll(at(700)).kind, Kind::kSendPing);
  EXPECT_FALSE(detector.hasten(at(750))) << "a ping is out: its interval stays";
  EXPECT_EQ(detector.poll(at(800)).kind, Kind::kSendPing);
  EXPECT_EQ(detector.poll(at(900)).kind, Kind::kFailed);
  EXPECT_FALSE(detector.hasten(at(1000))) << "failed is final";
}

TEST(Detector, APeerThatSomebodyWaitsForIsNotAskedEarlier) {
  Detector busy(options(), at(0));
  busy.set_busy(true, at(0));
  EXPECT_FALSE(busy.hasten(at(50)));
  DetectorOptions quick = options();
  quick.idle_factor = 1;
  Detector always(quick, at(0));
  EXPECT_FALSE(always.hasten(at(50))) << "an idle peer is asked as often as a busy one";
}

TEST(Detector, OurOwnStandstillIsOneMissedInterval) {
  Detector detector(options(), at(0));
  detector.set_busy(true, at(0));
  EXPECT_EQ(detector.poll(at(3600000)).kind, Kind::kSendPing);
  EXPECT_EQ(detector.poll(at(3600000)).kind, Kind::kNone);
  EXPECT_EQ(detector.poll(at(3600100)).kind, Kind::kSendPing);
  detector.on_heard(at(3600150));
  EXPECT_EQ(detector.poll(at(3600200)).kind, Kind::kNone);
}

TEST(Detector, APolledPeerIsPingedAndNeverFailed) {
  DetectorOptions polled = options();
  polled.judged = false;
  polled.patience = ms(1000);
  Detector detector(polled, at(0));
  detector.set_busy(true, at(0));
  EXPECT_EQ(detector.poll(at(100)).kind, Kind::kSendPing);
  EXPECT_EQ(detector.poll(at(200)).kind, Kind::kSendPing);
  EXPECT_EQ(detector.poll(at(300)).kind, Kind::kNone);
  EXPECT_EQ(detector.next_timeout(), Instant::max());
  EXPECT_FALSE(detector.suspect());
  EXPECT_FALSE(detector.on_heard(at(5000)));
  EXPECT_EQ(detector.next_timeout(), at(5100));
}

TEST(Detector, SenselessOptionsAreMended) {
  Detector detector({.interval = Duration::max() / 4, .missed = 0, .patience = ms(1), .idle_factor = 8, .judged = true},
                    at(0));
  EXPECT_EQ(detector.next_timeout(), Instant::max());
  Detector quick({.interval = ms(1), .missed = 0, .patience = -ms(1), .idle_factor = 0, .judged = true}, at(0));
  EXPECT_EQ(quick.poll(at(1)).kind, Kind::kSendPing);
  EXPECT_EQ(quick.poll(at(2)).kind, Kind::kFailed);
}

}  // namespace
}  // namespace hawser::proto
