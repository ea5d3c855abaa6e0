#include "common/data/digit_glyphs.h"

#include <array>

#include "common/base/check.h"

namespace dtf::data {

namespace {

using enum Pen;

constexpr GlyphPoint kZeroOval[] = {{50, 2},  {28, 15}, {20, 50}, {30, 85},      {50, 98},
                                    {72, 85}, {80, 50}, {70, 15}, {50, 2, kLift}};
constexpr GlyphPoint kZeroOvershot[] = {{60, 6},  {38, 8},  {24, 35}, {24, 70}, {40, 97},
                                        {62, 92}, {76, 60}, {72, 25}, {52, 4},  {36, 14, kLift}};
constexpr GlyphPoint kZeroOpen[] = {{62, 4},  {34, 12}, {22, 46}, {30, 84},       {56, 98},
                                    {78, 76}, {82, 40}, {68, 14}, {48, 10, kLift}};

constexpr GlyphPoint kOneBare[] = {{50, 2}, {50, 50}, {50, 98, kLift}};
constexpr GlyphPoint kOneFlag[] = {{34, 24}, {54, 3, kCorner}, {53, 50}, {52, 98, kLift}};
constexpr GlyphPoint kOneBase[] = {
    {36, 20}, {52, 3, kCorner}, {52, 97, kLift}, {32, 98}, {72, 97, kLift}};

constexpr GlyphPoint kTwoFlat[] = {{24, 24}, {36, 6},           {60, 4},  {74, 22},       {66, 46},
                                   {44, 70}, {22, 96, kCorner}, {50, 96}, {78, 94, kLift}};
constexpr GlyphPoint kTwoLoop[] = {{26, 22}, {46, 4},  {70, 14}, {70, 38}, {50, 66},
                                   {30, 90}, {22, 84}, {34, 78}, {54, 90}, {80, 92, kLift}};
constexpr GlyphPoint kTwoSwan[] = {{22, 16}, {42, 3},        {66, 8},  {74, 28},
                                   {58, 54}, {36, 76},       {20, 94}, {40, 88, kCorner},
                                   {60, 97}, {82, 86, kLift}};

constexpr GlyphPoint kThreeRound[] = {{26, 12}, {50, 3},           {70, 16},
                                      {66, 36}, {46, 47, kCorner}, {70, 56},
                                      {76, 76}, {56, 97},          {24, 88, kLift}};
constexpr GlyphPoint kThreeFlat[] = {{24, 6},  {72, 5, kCorner}, {46, 40, kCorner}, {72, 54},
                                     {74, 80}, {50, 98},         {22, 88, kLift}};
constexpr GlyphPoint kThreeCurl[] = {{26, 16}, {48, 2},  {68, 16},       {62, 38},
                                     {44, 46}, {38, 50}, {48, 51},       {70, 60},
                                     {72, 82}, {50, 97}, {26, 90, kLift}};

constexpr GlyphPoint kFourOpen[] = {{34, 4},         {25, 34}, {23, 56, kCorner},
                                    {78, 54, kLift}, {66, 12}, {64, 98, kLift}};
constexpr GlyphPoint kFourClosed[] = {
    {62, 98}, {62, 4, kCorner}, {20, 68, kCorner}, {82, 68, kLift}};
constexpr GlyphPoint kFourCup[] = {{28, 6}, {25, 40}, {42, 55},       {70, 48, kLift},
                                   {74, 6}, {70, 50}, {66, 98, kLift}};

constexpr GlyphPoint kFiveOneStroke[] = {{74, 5},  {32, 5, kCorner}, {28, 44, kCorner},
                                         {50, 38}, {72, 52},         {74, 76},
                                         {54, 97}, {24, 90, kLift}};
constexpr GlyphPoint kFiveHat[] = {{32, 6},  {28, 44, kCorner}, {54, 39}, {76, 62},      {64, 92},
                                   {38, 98}, {22, 88, kLift},   {32, 6},  {76, 4, kLift}};
constexpr GlyphPoint kFiveSnake[] = {{74, 6},  {42, 8},  {29, 28}, {40, 44},
                                     {66, 54}, {74, 76}, {52, 97}, {24, 88, kLift}};

constexpr GlyphPoint kSixRound[] = {{66, 4},  {40, 24}, {26, 60}, {36, 92},       {58, 97},
                                    {74, 78}, {64, 58}, {42, 58}, {29, 76, kLift}};
constexpr GlyphPoint kSixStraight[] = {{56, 2},  {34, 40}, {24, 72}, {40, 97},
                                       {66, 92}, {72, 70}, {54, 58}, {28, 72, kLift}};
constexpr GlyphPoint kSixHook[] = {{74, 12}, {52, 4},  {30, 26}, {22, 62}, {36, 95},
                                   {62, 95}, {76, 72}, {60, 52}, {36, 60}, {25, 78, kLift}};

constexpr GlyphPoint kSevenPlain[] = {{22, 6}, {78, 6, kCorner}, {58, 48}, {44, 98, kLift}};
constexpr GlyphPoint kSevenBar[] = {{22, 7},         {78, 6, kCorner}, {60, 46},
                                    {46, 98, kLift}, {36, 50},         {74, 48, kLift}};
constexpr GlyphPoint kSevenSerif[] = {
    {22, 22}, {25, 6, kCorner}, {78, 7, kCorner}, {62, 44}, {54, 98, kLift}};

constexpr GlyphPoint kEightOneStroke[] = {{68, 14}, {48, 3},  {30, 18}, {44, 42},
                                          {66, 60}, {72, 82}, {50, 98}, {28, 84},
                                          {34, 60}, {58, 42}, {71, 24}, {66, 10, kLift}};
constexpr GlyphPoint kEightTwoRings[] = {
    {50, 3},  {30, 14}, {32, 38}, {50, 48}, {68, 38}, {70, 14}, {50, 3, kLift},
    {50, 48}, {26, 62}, {28, 88}, {50, 98}, {72, 88}, {74, 62}, {50, 48, kLift}};
constexpr GlyphPoint kEightOpen[] = {{74, 10}, {52, 4},  {32, 14},       {38, 36},
                                     {62, 56}, {74, 78}, {54, 97},       {30, 86},
                                     {34, 62}, {56, 42}, {78, 14, kLift}};

constexpr GlyphPoint kNineStem[] = {{72, 22}, {52, 4},           {30, 16}, {28, 40},       {46, 54},
                                    {66, 42}, {73, 18, kCorner}, {70, 60}, {64, 98, kLift}};
constexpr GlyphPoint kNineHook[] = {{72, 20}, {50, 4},  {29, 18},          {30, 42},
                                    {48, 53}, {68, 42}, {74, 16, kCorner}, {74, 62},
                                    {62, 92}, {40, 97}, {24, 86, kLift}};
constexpr GlyphPoint kNineBall[] = {{72, 26}, {54, 5},         {32, 14}, {28, 36}, {46, 52},
                                    {66, 44}, {72, 26, kLift}, {74, 8},  {70, 54}, {66, 98, kLift}};

constexpr std::array<std::array<Glyph, 3>, 10> kGlyphs = {{
    {kZeroOval, kZeroOvershot, kZeroOpen},
    {kOneBare, kOneFlag, kOneBase},
    {kTwoFlat, kTwoLoop, kTwoSwan},
    {kThreeRound, kThreeFlat, kThreeCurl},
    {kFourOpen, kFourClosed, kFourCup},
    {kFiveOneStroke, kFiveHat, kFiveSnake},
    {kSixRound, kSixStraight, kSixHook},
    {kSevenPlain, kSevenBar, kSevenSerif},
    {kEightOneStroke, kEightTwoRings, kEightOpen},
    {kNineStem, kNineHook, kNineBall},
}};

}  // namespace

std::span<const Glyph> glyphsOf(int digit) {
  DTF_CHECK(digit >= 0 && digit < static_cast<int>(kGlyphs.size()));
  return kGlyphs[static_cast<size_t>(digit)];
}

}  // namespace dtf::data
